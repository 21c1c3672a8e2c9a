import { byRules, byServer, edit, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of latches. See lua/common/latch.lua. */
export const latch: readonly Mutant[] = [
  {
    name: "latch-counts-an-attempt-twice",
    brokenRule: "a latch counts down to zero, once for each attempt",
    edits: [
      lua(
        "common/latch",
        "  if remaining > 1 and redis.call('HEXISTS', lock_key, attempt) == 0 then",
        "  if remaining > 1 then",
      ),
    ],
    killers: [
      byRules("fake-redis/fake-redis", "latch: an attempt counts once"),
      byServer("drivers/redis/protocol/scripts/latch", "an attempt counts once"),
    ],
  },
  {
    name: "latch-repeated-countdown-is-another-attempt",
    brokenRule:
      "a repeated countdown is one attempt with one token, so an executed countdown without a reply counts once",
    edits: [
      redis(
        "single/latches",
        "const args = [this.#token, String(count)",
        "const args = [this.#latches.host.tokenOf(this.latch.key, undefined), String(count)",
      ),
    ],
    killers: [byRules("kinds/latch", "a count whose reply was lost counts once, however often it is sent")],
  },
  {
    name: "latch-count-names-no-latch",
    brokenRule: "a resent count does not count on the next latch of the key",
    edits: [
      redis(
        "single/latches",
        'return this.#name === "countDown" && generation !== undefined',
        'return this.#name === "countDown"',
      ),
    ],
    killers: [byRules("kinds/latch", "a count that the client library resends after the end of its latch")],
  },
  {
    name: "latch-notifies-no-waiter",
    brokenRule: "an opening latch notifies its waiters",
    edits: [
      lua(
        "common/latch",
        "      publish(kind, client, 'latch-open ' .. created_at .. ' ' .. lock_key)\n",
        "",
      ),
    ],
    killers: [
      byRules("kinds/latch", "a notification ends a wait"),
      byServer("drivers/redis/protocol/scripts/latch", "waiters are notified once"),
    ],
  },
  {
    name: "latch-wait-without-its-poll",
    brokenRule: "a waiter polls even if every notification is lost",
    edits: [
      redis(
        "single/latches",
        "      this.retryIn(queuedPollDelay(random, 0, remainingMs, Infinity));",
        "      void queuedPollDelay(random, 0, remainingMs, Infinity);",
      ),
    ],
    killers: [byRules("kinds/latch", "a lost notification delays a wait by at most 5 s")],
  },
  {
    name: "latch-waiter-does-not-retry-after-a-subscription",
    brokenRule: "on every subscription waiting requests are sent again",
    edits: [redis("single/request-registry", "    this.latches.notificationStatusChanged(server);\n", "")],
    killers: [byRules("kinds/latch", "a waiter polls as soon as its lost subscription is back")],
  },
  {
    name: "latch-reply-overtaken-by-its-notification",
    brokenRule: "a notification that arrives before the reply to its request is not lost",
    edits: [
      redis("single/latches", "      this.sendIfOpen(); // the notification arrived before the reply\n", ""),
    ],
    killers: [
      byRules("kinds/latch", "a notification that overtakes the reply to the first request is not missed"),
    ],
  },
  {
    name: "latch-opened-by-an-earlier-latch",
    brokenRule: "the creation time of a latch distinguishes it from the next latch of its key",
    edits: [
      redis(
        "single/latches",
        "if (this.#waits && this.latch.generation === id) {",
        'if (this.#waits && id !== "") {',
      ),
    ],
    killers: [
      byRules("kinds/latch", "a notification of an earlier latch does not open a later latch of the key"),
    ],
  },
  {
    name: "latch-forgotten-while-open",
    brokenRule: "a latch stays open until its TTL has passed",
    edits: [
      lua(
        "common/latch",
        "    redis.call('UNLINK', lock_key)\n    write()\n",
        "    redis.call('UNLINK', lock_key)\n",
      ),
    ],
    killers: [
      byRules("fake-redis/fake-redis", "latch: an open latch stays open"),
      byServer("drivers/redis/protocol/scripts/latch", "a repeat of the last"),
    ],
  },
  {
    name: "latch-restarts-for-its-former-clients",
    brokenRule: "an object that has used a latch touches no other latch",
    edits: [lua("common/latch", "  elseif known ~= '' then\n    return false\n  end\n", "  end\n")],
    killers: [
      byRules("kinds/latch", "a latch that the server lost early has expired for clients that know it"),
      byServer("drivers/redis/protocol/scripts/latch", "a latch that was created"),
    ],
  },
  {
    name: "latch-counts-a-late-countdown",
    brokenRule:
      "a countdown after its latest time has no effect, because its caller has failed and the key may have the next latch",
    edits: [
      lua(
        "common/latch",
        "function latch.countDown(token, count, ttl, known, latest)\n  if now_ms > tonumber(latest) then",
        "function latch.countDown(token, count, ttl, known, latest)\n  if tonumber(latest) < 0 then",
      ),
    ],
    killers: [
      byRules(
        "kinds/latch",
        "a count that reaches the server after its caller's timeout does not count in the next latch of the key",
      ),
      byServer("drivers/redis/protocol/scripts/latch", "a request that comes too late"),
    ],
  },
  {
    name: "latch-written-in-two-steps",
    brokenRule:
      "if memory is full, a countdown is refused as a whole, so no waiter is notified of a count that was not written",
    edits: [
      lua(
        "common/latch",
        "    redis.call('HSET', lock_key, attempt, 1, 'left', remaining)\n",
        "    redis.pcall('HSET', lock_key, attempt, 1, 'left', remaining)\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/latch", "with full memory a")],
  },
  {
    name: "latch-dead-waiters-are-counted",
    brokenRule: "a sorted set has the waiters by the time until which each is expected to poll",
    edits: [
      lua(
        "common/latch",
        "grant_numbers()\n  redis.call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)\n",
        "grant_numbers()\n",
      ),
    ],
    killers: [
      byRules("kinds/latch", "a waiter is counted while it polls: a dead process is dropped after 15 s"),
      byServer("drivers/redis/protocol/scripts/latch", "inspect reports the remaining"),
    ],
  },
  {
    name: "latch-of-memory-counts-an-attempt-twice",
    brokenRule: "a latch counts down to zero, once for each attempt",
    edits: [
      edit(
        "drivers/memory/latch.ts",
        "(attemptId !== undefined && this.#attempts.has(attemptId))",
        '(attemptId === "" && this.#attempts.has(attemptId))',
      ),
    ],
    killers: [byRules("drivers/memory/driver", "latch: an attempt counts once")],
  },
  {
    name: "latch-of-memory-admits-a-mutex",
    brokenRule: "a key of another kind is refused with kind-mismatch and stays unchanged",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "    if (latch) {\n      return kindMismatch(key, latch.kind);\n    }\n",
        "    void latch;\n",
      ),
    ],
    killers: [byRules("drivers/memory/driver", "latch: a key is one kind at a time")],
  },
];
