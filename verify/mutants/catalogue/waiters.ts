import { byRules, byServer, lua, type Mutant } from "../mutant.ts";

/** Mutants of a server's or node's operations for waiters. */
export const waiters: readonly Mutant[] = [
  {
    name: "queue-is-not-in-the-order-of-tickets",
    brokenRule:
      "a node that voted for another request queues ours by ticket, because the model of the queue has no other order",
    edits: [lua("common/queue", "'NX', ticket_of(token), queue_entry", "'NX', '0', queue_entry")],
    killers: [byRules("verify/test/trace/trace.test.ts", "10 schedules from seed 1 on")],
  },
  {
    name: "publish-error-drops-the-waiter",
    brokenRule: "an error of PUBLISH puts the waiter back and fails the operation",
    hasCounterexample: true,
    edits: [lua("common/grant-waiter", "    put_back(waiter)\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/grant", "a refused publish loses no waiter")],
  },
  {
    name: "publish-error-skips-a-waiter",
    brokenRule: "an error of PUBLISH fails the operation, and does not skip the waiter",
    hasCounterexample: true,
    edits: [
      lua(
        "common/grant-waiter",
        "    error(receivers.err, 0)\n  elseif receivers == 0 then",
        "    receivers = 0\n  end\n  if receivers == 0 then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/grant", "a refused publish loses no waiter")],
  },
  {
    name: "publish-error-extends-the-queue",
    brokenRule:
      "after an error of PUBLISH the queue keeps its former TTL, so that it does not block the lock",
    edits: [
      lua(
        "common/grant-waiter",
        "redis.call('PEXPIRE', queue, waiter[3] or 60000)",
        "redis.call('PEXPIRE', queue, 60000)",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/grant", "a client without the right"),
      byServer("drivers/redis/protocol/scripts/share-publish-refused", "does not extend the queue's"),
    ],
  },
  {
    name: "own-queue-entry-extends-the-queue-after-an-error",
    brokenRule: "after an error the queue has the TTL from before the operation's own entry",
    edits: [
      lua(
        "single/mutex",
        "    note_ttl()\n    enqueue(token, queue_entry)",
        "    enqueue(token, queue_entry)",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/grant", "a client without the right")],
  },
  {
    name: "unknown-kind-of-channel-stops-the-queue",
    brokenRule: "a waiter whose kind of channel the server does not support is skipped",
    edits: [lua("common/waiters", "return is_unknown and 0 or receivers", "return receivers")],
    killers: [
      byServer("drivers/redis/protocol/scripts/grant", "a waiter whose kind of channel the"),
      byServer("drivers/redis/protocol/scripts/share-publish-refused", "makes a release skip a reader whose"),
    ],
  },
  {
    name: "waiter-without-a-receiver-is-granted",
    brokenRule: "if a notification has no receiver, the script grants to the next waiter",
    edits: [
      lua(
        "common/grant-waiter",
        "  elseif receivers == 0 then\n    revoke_grant()\n    return false\n  end",
        "  end",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/grant", "a waiter whose process has ended")],
  },
  {
    name: "waiter-past-its-deadline-is-granted",
    brokenRule: "only a waiter within its deadline is granted",
    edits: [
      lua(
        "common/grant-waiter",
        "if not deadline or (deadline ~= 0 and deadline * 1000 < now) then",
        "if not deadline then",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/grant", "members past their deadline are dropped without"),
    ],
  },
  {
    name: "dead-waiters-keep-the-lock",
    brokenRule: "after a bounded number of dead waiters the script leaves K absent and replies more",
    edits: [lua("common/queue", "  redis.call('DEL', lock_key)\n  return false\nend", "  return false\nend")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/queue-order",
        "a holder's release that meets 16 waiters past their deadlines",
      ),
    ],
  },
  {
    name: "try-overtakes-the-queue",
    brokenRule: "a try comes after all waiters",
    edits: [
      lua(
        "single/mutex",
        "  local next_holder = grant_next(queue_entry)\n",
        "  local next_holder\n  if wait ~= '0' then\n    next_holder = grant_next(queue_entry)\n  end\n",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/acquire-queue", "a try on a free lock comes after every"),
    ],
  },
  {
    name: "acquire-of-a-free-lock-overtakes-the-queue",
    brokenRule: "an acquire of a free lock grants to the first of all waiters, the request included",
    edits: [
      lua("single/fast-acquire", "call('EXISTS', lock_key, queue) == 0", "call('EXISTS', lock_key) == 0"),
      lua(
        "single/mutex",
        "  if redis.call('EXISTS', queue) == 0 then",
        "  if redis.call('EXISTS', lock_key) == 0 then",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/acquire-queue", "a try on a free lock comes after every"),
    ],
  },
  {
    name: "release-leaves-its-queue-entry",
    brokenRule: "release also removes the queue entry of a token without a grant",
    edits: [
      lua(
        "single/mutex",
        "  dequeue(token, queue_args)\n  if redis.call('HGET', info, 'token') == token then",
        "  if redis.call('HGET', info, 'token') == token then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/release", "a waiter leaves the queue, and no")],
  },
  {
    name: "free-lock-is-not-granted-to-the-first-waiter",
    brokenRule: "every operation that finds K absent and a waiter grants to the first waiter",
    edits: [
      lua(
        "common/queue",
        "return not holder and redis.call('EXISTS', queue) == 1 and grant_next() == false",
        "return false",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/release", "a release that finds the lock expired grants"),
    ],
  },
  {
    name: "repeat-of-the-holder-is-queued",
    brokenRule: "a repeated acquire of the holder gets the same grant with the same numbers",
    edits: [
      lua(
        "single/mutex",
        "  elseif holder == token then\n    return repeat_grant(",
        "  elseif holder == token and wait == '0' then\n    return repeat_grant(",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/acquire-queue", "a repeat by the holder returns its grant"),
    ],
  },
  {
    name: "unreachable-waiter-is-notified-again",
    brokenRule: "if a notification has no receiver, the script grants to the next waiter",
    edits: [lua("common/queue", "    removed_waiter = nil\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/grant", "a holder's release skips dead waiters")],
  },
  {
    name: "queue-without-bound",
    brokenRule: "a queue has a bound, and then replies too-many-waiters",
    edits: [lua("single/mutex", "tonumber(wait) < 3 and answer[3] >= queue_bound", "queue_bound < 0")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/acquire-queue",
        "a full queue refuses a new waiter and stores",
      ),
    ],
  },
  {
    name: "poll-does-not-keep-the-queue-alive",
    brokenRule: "every added or repeated entry renews the expiry of the queue, so polls keep the queue",
    edits: [
      lua(
        "common/queue",
        "  redis.call('PEXPIRE', queue, 60000)\n  return added",
        "  if added == 1 then\n    redis.call('PEXPIRE', queue, 60000)\n  end\n  return added",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/acquire-queue", "each queued request extends the queue's TTL"),
    ],
  },
];
