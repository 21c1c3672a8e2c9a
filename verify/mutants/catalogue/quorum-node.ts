import { byServer, lua, type Mutant } from "../mutant.ts";

const nodeMutex = "drivers/redis/protocol/scripts/quorum-mutex";

/** Mutants of a quorum node's operations for the holder of its vote. */
export const oneNode: readonly Mutant[] = [
  {
    name: "raising-the-ttl-of-a-vote-shortens-it",
    brokenRule: "a repeated acquire raises the TTL to at least ttl and never shortens it",
    hasCounterexample: true,
    edits: [lua("quorum/lock-context", "math.max(remaining_ms, ttl)", "math.max(0, ttl)")],
    killers: [byServer(nodeMutex, "is raised in its TTL by a repeat")],
  },
  {
    name: "release-of-a-vote-without-comparing",
    brokenRule: "a release with another token is answered with not-held",
    edits: [
      lua("execute-quorum", "elseif holder == token then", "elseif holder then"),
      lua(
        "quorum/release",
        "local function release(token, queue_args)\n  if holder == token then",
        "local function release(token, queue_args)\n  if holder then",
      ),
    ],
    killers: [byServer(nodeMutex, "the whole token is compared")],
  },
  {
    name: "acquire-of-a-vote-compares-the-random-part-only",
    brokenRule:
      "a grant belongs to a request only if the whole token matches, because a token has one owner forever",
    hasCounterexample: true,
    edits: [
      lua(
        "quorum/acquire",
        "  elseif holder == token then\n    return repeat_grant(token, queue_entry, ttl, metadata)\n  elseif wait",
        "  elseif string.sub(holder, 1, 33) == string.sub(token, 1, 33) then\n    return repeat_grant(token, queue_entry, ttl, metadata)\n  elseif wait",
      ),
    ],
    killers: [
      byServer(nodeMutex, "the whole token is compared"),
      byServer("drivers/redis/single/clones", "never hold a lock at once: a quorum"),
    ],
  },
  {
    name: "extension-of-a-vote-re-creates",
    brokenRule: "extend raises the TTL of our grant, or replies not-held, and never creates a grant",
    edits: [
      lua(
        "quorum/extend",
        "  if holder ~= token then\n    local reason",
        "  if not holder then\n    write_grant(token, ttl, 1)\n  elseif holder ~= token then\n    local reason",
      ),
    ],
    killers: [byServer(nodeMutex, "that was released is absent")],
  },
  {
    name: "extension-without-comparing-the-vote",
    brokenRule: "extend raises the TTL of our grant, or replies not-held",
    edits: [
      lua(
        "quorum/extend",
        "  if holder ~= token then\n    local reason",
        "  if not holder then\n    local reason",
      ),
    ],
    killers: [byServer(nodeMutex, "the whole token is compared")],
  },
  {
    name: "extension-of-a-vote-does-not-extend-the-metadata",
    brokenRule: "the metadata of a holder lasts as long as K",
    edits: [lua("quorum/lock-context", "    redis.call('PEXPIRE', info, ttl)\n", "")],
    killers: [byServer(nodeMutex, "is inspected: its owner's metadata")],
  },
  {
    name: "shorter-extension-of-a-vote-shortens-the-metadata",
    brokenRule: "the metadata of a holder lasts as long as its grant",
    edits: [
      lua(
        "quorum/extend",
        "write_info(token, raise_ttl(ttl), metadata)",
        "raise_ttl(ttl)\n  write_info(token, ttl, metadata)",
      ),
    ],
    killers: [byServer(nodeMutex, "is inspected: its owner's metadata")],
  },
  {
    name: "operator-breaks-a-later-vote",
    brokenRule: "break ends a grant only if the number is in the block of the current grant",
    edits: [
      lua(
        "quorum/release",
        "if not client or not first or number < first or number > last then",
        "if not client or not first or number > last then",
      ),
    ],
    killers: [byServer(nodeMutex, "is broken by a number of its block")],
  },
  {
    name: "holder-of-a-broken-vote-is-not-notified",
    brokenRule: "break notifies the holder",
    edits: [
      lua(
        "quorum/release",
        "  publish(kind, client, 'broken ' .. cjson.encode({ holder, lock_key, reason }))\n",
        "",
      ),
    ],
    killers: [byServer(nodeMutex, "is broken by a number of its block")],
  },
  {
    name: "queue-entry-for-a-vote-remains-after-its-release",
    brokenRule: "release also removes the queue entry of a token without a grant",
    edits: [
      lua(
        "quorum/release",
        "  dequeue(token, queue_args)\n  if redis.call('HGET', info, 'token') == token then",
        "  if redis.call('HGET', info, 'token') == token then",
      ),
    ],
    killers: [byServer(nodeMutex, "is left alone by the release")],
  },
  {
    name: "waiter-popped-by-a-node-is-dropped",
    brokenRule: "a waiter that a script removes from the queue is granted, or put back",
    edits: [lua("quorum/hand-over", "removed_waiter = next_waiter\n", "removed_waiter = nil\n")],
    killers: [byServer(nodeMutex, "a waiter of another kind stays")],
  },
  {
    name: "queue-for-a-vote-without-bound",
    brokenRule: "a queue has a bound, and then replies too-many-waiters",
    edits: [
      lua(
        "quorum/acquire",
        "if is_new and wait ~= '3' and answer[3] >= queue_bound then",
        "if is_new and queue_bound < 0 then",
      ),
    ],
    killers: [byServer(nodeMutex, "refuses a waiter past")],
  },
  {
    name: "try-for-a-vote-overtakes-the-queue",
    brokenRule: "a try comes after all waiters",
    edits: [
      lua(
        "quorum/acquire",
        "  local next_holder = grant_next(queue_entry)\n",
        "  local next_holder\n  if wait ~= '0' then\n    next_holder = grant_next(queue_entry)\n  end\n",
      ),
    ],
    killers: [byServer(nodeMutex, "is refused to a try while others")],
  },
];
