import { byRules, byServer, bySim, edit, lua, redis, type Mutant } from "../mutant.ts";

/** Mutants of locks that several holders may share. */
export const sharedModes: readonly Mutant[] = [
  {
    name: "reader-overtakes-a-waiting-writer",
    brokenRule:
      "a heavy request at the head of the queue does not starve: no reader is admitted before a waiting writer",
    edits: [
      lua("common/shared-lock-grants", "  elseif first_waiter() or used", "  elseif used"),
      lua("common/shared-lock", "  elseif not first_waiter() and used", "  elseif used"),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "is not given to a try before")],
  },
  {
    name: "one-permit-above-the-limit",
    brokenRule: "a request is granted if the sum of weights with the request stays within the limit",
    edits: [
      lua(
        "common/shared-lock-grants",
        "    if may_hold and used + weight > limit then",
        "    if may_hold and used + weight > limit + 1 then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant")],
  },
  {
    name: "evicted-numbers-are-reported-as-none",
    brokenRule:
      "fencing numbers are unique and rise between grants, even if the numbers of a holder were evicted",
    edits: [lua("common/shared-lock", "  if number == 0 then\n", "  if false then\n")],
    killers: [byServer("drivers/redis/protocol/scripts/share-blocks", "whose numbers were evicted")],
  },
  {
    name: "expired-holders-remain",
    brokenRule: "every operation first drops expired holders",
    edits: [
      lua(
        "common/shared-holders",
        "'ZRANGEBYSCORE', lock_key, '-inf', now_ms,",
        "'ZRANGEBYSCORE', lock_key, '-inf', 0,",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "replaces expired holders at")],
  },
  {
    name: "waiter-without-a-receiver-keeps-the-shared-lock",
    brokenRule: "if a notification has no receiver, the script grants to the next waiter",
    edits: [
      lua(
        "common/shared-lock-grants",
        "      if receivers == 0 then\n        remove(token)\n",
        "      if receivers == 0 then\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-dead-entries", "waiters that are dead or")],
  },
  {
    name: "publish-error-drops-a-waiter-of-a-shared-lock",
    brokenRule: "an error of PUBLISH puts the waiter back and fails the operation",
    edits: [lua("common/shared-lock-grants", "        put_back(with_ttl({ queue_entry, score }))\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/share-publish-refused", "requeues the waiter and")],
  },
  {
    name: "longest-holder-does-not-extend-the-shared-lock",
    brokenRule: "K lasts as long as any of its holders",
    edits: [lua("common/shared-holders", "if longest < ttl + slack_ms then", "if longest < 0 then")],
    killers: [
      byServer("drivers/redis/protocol/scripts/share-grant", "and every extension keep the holders'"),
    ],
  },
  {
    name: "waiter-before-the-cached-first-is-ignored",
    brokenRule:
      "the script grants to the first waiter, and caches that waiter only while the queue is unchanged",
    edits: [
      lua(
        "common/shared-holders",
        "  if not score or score >= tonumber(ticket_of(token)) then",
        "  if not score then",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/share-grant",
        "goes to a reader whose ticket is earlier than that of the first waiter",
      ),
    ],
  },
  {
    name: "token-that-waits-twice-is-granted-twice",
    brokenRule: "a token holds K once, even if its channel changed while it waited",
    edits: [
      lua(
        "common/shared-lock-grants",
        "local already_holds = holder_entry(token)\n",
        "local already_holds = false\n",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-grant", "for a token that is queued twice")],
  },
  {
    name: "downgrade-counts-each-time",
    brokenRule: "each operation is safe to repeat",
    edits: [lua("common/shared-lock", "  used = used - weight + 1\n", "  used = 1\n")],
    killers: [
      byServer("drivers/redis/protocol/scripts/share-change", "a downgrade that is sent twice counts once"),
    ],
  },
  {
    name: "reader-yields-by-any-number",
    brokenRule: "yield(token, y) ends only a grant with the number y",
    edits: [
      lua(
        "common/shared-lock",
        "  if holder_entry(token) ~= tonumber(number) then",
        "  if not holder_entry(token) then",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-votes", "is not yielded by another")],
  },
  {
    name: "memory-has-one-permit-above-the-limit",
    brokenRule: "a request is granted if the sum of weights with the request stays within the limit",
    edits: [
      edit(
        "drivers/memory/lock.ts",
        "return this.#used + weight <= this.limit;",
        "return this.#used + weight <= this.limit + 1;",
      ),
    ],
    killers: [bySim(1, 20, "semaphore,memory"), byRules("kinds/semaphore")],
  },
  {
    name: "branches-enter-together",
    brokenRule: "a nested hold has at most one active child, and the next child waits",
    edits: [
      edit(
        "kinds/async-mutex.ts",
        "const isFree = !this.#isLocked;",
        "const isFree = this.#waiting.size === 0;",
      ),
    ],
    killers: [bySim(1, 40, "reentrant,calm"), byRules("kinds/reentrant")],
  },
  {
    name: "multi-lock-keeps-keys-of-a-failed-try",
    brokenRule: "a failed try releases all keys",
    edits: [
      edit(
        "kinds/multi-lock.ts",
        "    await releaseAll(leases);\n    const failed =",
        "    await releaseAll([]);\n    const failed =",
      ),
    ],
    killers: [byRules("kinds/multi-lock")],
  },
  {
    name: "changed-limit-is-forgotten-with-the-last-holder",
    brokenRule: "kind and limit are stored beside K while it has a holder or a waiter",
    edits: [lua("common/shared-holders", "    redis.call('HSET', info, 'kind', kind, 'limit', limit)\n", "")],
    killers: [byServer("drivers/redis/protocol/scripts/share-terms", "a lowered limit outlasts all holders")],
  },
  {
    name: "limit-remains-without-a-waiter",
    brokenRule: "kind and limit are stored beside K only while it has a holder or a waiter",
    edits: [lua("common/shared-lock", "  clear_settings()\n", "")],
    killers: [
      byServer("drivers/redis/protocol/scripts/share-terms", "a limit is forgotten when the last waiter"),
    ],
  },
  {
    name: "repeat-of-a-shared-grant-has-one-number",
    brokenRule: "a repeat of a request gets the same grant with the same numbers",
    edits: [lua("common/shared-holders", "first + (count or 1) - 1", "first")],
    killers: [byServer("drivers/redis/protocol/scripts/share-blocks", "a repeat gets the same")],
  },
  {
    name: "number-inside-a-shared-block-is-current",
    brokenRule:
      "checkFence: a number inside a block is unknown, because the server does not know hand-overs in memory",
    edits: [
      redis(
        "server/lock-snapshot",
        '(fencingToken === lastNumberOf(holding) ? "current" : "unknown")',
        '(fencingToken <= holding.last ? "current" : "unknown")',
      ),
    ],
    killers: [byRules("fake-redis/fake-redis", "semaphore: a lease is handed over in its process")],
  },
  {
    name: "break-of-a-shared-grant-names-the-first-number-only",
    brokenRule: "a break names a number in the block of a current grant",
    edits: [lua("common/shared-lock", "named >= first and named <= last", "named == first")],
    killers: [byServer("drivers/redis/protocol/scripts/share-blocks", "a break names any number of a block")],
  },
  {
    name: "break-of-a-shared-grant-names-any-later-number",
    brokenRule: "a break ends only the grant whose block has its number",
    edits: [lua("common/shared-lock", "named >= first and named <= last", "named >= first")],
    killers: [byServer("drivers/redis/protocol/scripts/share-blocks", "a break names any number of a block")],
  },
  {
    name: "waiter-gets-more-than-a-lowered-limit",
    brokenRule: "a waiter that requests more than a lowered limit is refused",
    edits: [lua("common/shared-holders", "not (accepts_any and weight <= limit)", "not accepts_any")],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/share-blocks",
        "a waiter of a local queue accepts the present",
      ),
    ],
  },
];
