import { byKept, byRules, byServer, bySim, edit, lua, type Mutant } from "../mutant.ts";

/** Mutants of several keys, reentrant locks, elections and other kinds. */
export const kinds: readonly Mutant[] = [
  {
    name: "multi-lock-acquires-keys-in-the-given-order",
    brokenRule: "several keys: callers that name keys in different orders do not deadlock",
    edits: [edit("kinds/multi-lock.ts", "new Set(keys.map(check))).sort();", "new Set(keys.map(check)));")],
    killers: [bySim(1, 40, "all"), byRules("kinds/multi-lock")],
  },
  {
    name: "multi-lock-keeps-keys-after-its-wait-timeout",
    brokenRule: "several keys: an acquire gets every key or none",
    edits: [
      edit(
        "kinds/multi-lock.ts",
        "      await releaseAll(leases);\n      throw error instanceof WaitTimeoutError",
        "      throw error instanceof WaitTimeoutError",
      ),
    ],
    killers: [bySim(1, 40, "all"), byRules("kinds/multi-lock")],
  },
  {
    name: "multi-lock-is-lost-only-with-its-last-key",
    brokenRule: "several keys: the one lease is lost if any key is lost",
    edits: [
      edit(
        "kinds/multi-lease.ts",
        "return Math.min(...this.#leases.map((lease) => lease.remainingMs()));",
        "return Math.max(...this.#leases.map((lease) => lease.remainingMs()));",
      ),
    ],
    killers: [byRules("kinds/multi-lock")],
  },
  {
    name: "reentrant-is-free-before-the-last-release",
    brokenRule: "reentrant: nested acquires are counted, and the last release frees the lock",
    edits: [edit("kinds/reentrant-hold.ts", "    if (this.count > 0) {", "    if (this.count > 1) {")],
    killers: [bySim(1, 40, "reentrant"), byRules("kinds/reentrant")],
  },
  {
    name: "reentrant-session-forgets-its-end",
    brokenRule: "reentrant: a loss inside a nested hold is final",
    edits: [edit("kinds/reentrant-hold.ts", "this.base.currentLoss() !== undefined || ", "")],
    killers: [
      byRules(
        "kinds/reentrant",
        "the late reply to a renewal does not revive a lease that its session has found expired",
      ),
    ],
  },
  {
    name: "reentrant-is-never-free",
    brokenRule: "reentrant: the last release frees the lock",
    edits: [edit("kinds/reentrant-hold.ts", "    if (this.count > 0) {", "    if (this.count >= 0) {")],
    killers: [bySim(1, 40, "reentrant"), byRules("kinds/reentrant")],
  },
  {
    name: "repeat-sends-its-own-request",
    brokenRule: "repeats of an attempt in one process share one request of the driver",
    hasCounterexample: true,
    edits: [
      edit("kinds/shared-acquire.ts", "      if (entry.leader) {", "      if (entry.leader === caller) {"),
    ],
    killers: [
      byRules(
        "kinds/attempts-waiting",
        "sends no second request, and all repeats get the same grant at once",
      ),
    ],
  },
  {
    name: "first-of-the-repeats-releases-for-all",
    brokenRule: "all callers that wait for a grant are counted before the first can release it",
    edits: [
      edit(
        "kinds/shared-acquire.ts",
        "    const leases = waiting.map(() => this.#createLease(hold)); // count all leases before the first caller can release its lease\n    waiting.forEach((companion, index) => companion.settle(leases[index] as L));\n",
        "    waiting.slice(0, 1).forEach((companion) => {\n      companion.settle(this.#createLease(hold));\n    });\n",
      ),
    ],
    killers: [byRules("kinds/attempts-waiting", "all are granted before the first of them can release")],
  },
  {
    name: "late-repeat-reports-an-engine-failure",
    brokenRule: "wait-timeout means that waitMs passed while the lock was held",
    edits: [edit("kinds/shared-acquire.ts", "        follower.heldResult = { error, at: now };\n", "")],
    killers: [
      byRules("kinds/attempts-waiting", "a repeat starts its own request too late for a reply"),
      byKept(),
    ],
  },
  {
    name: "late-repeat-inspects-again",
    brokenRule: "a waiter has its result at most 250 ms after waitMs",
    edits: [
      edit(
        "kinds/shared-acquire.ts",
        "leader.fail(new WaitTimeoutError(key as string, wait.waitMs, holder, position));",
        "leader.settle(holder === undefined && position === undefined && wait.waitMs < 0 ? (key as never) : null);",
      ),
    ],
    killers: [byKept()],
  },
  {
    name: "orphaned-lease-is-shared",
    brokenRule: "a repeat does not share a lease that is left to expire",
    edits: [edit("kinds/shared-acquire.ts", " && !hold.isOrphaned", "")],
    killers: [byRules("kinds/attempts", "an orphaned lease expires, and a repeat does not get it")],
  },
  {
    name: "session-enters-a-released-hold",
    brokenRule: "reentrant: an extra release and a loss inside a nested hold have clear outcomes",
    edits: [
      edit(
        "kinds/reentrant-hold.ts",
        "return this.count === 0 || this.base.currentLoss()",
        "return this.base.currentLoss()",
      ),
      edit(
        "kinds/reentrant-hold.ts",
        "    return this.isEnded ? 0 : this.#base.remainingMs();",
        "    return this.#base.remainingMs();",
      ),
    ],
    killers: [bySim(1, 100, "reentrant"), byRules("kinds/reentrant")],
  },
  {
    name: "leader-resigns-without-a-release",
    brokenRule: "election: a new leader follows at once after a resignation",
    edits: [
      edit(
        "kinds/election.ts",
        "const wasOurs = await term?.release();",
        "const wasOurs = leads;\n    term?.orphan();",
      ),
    ],
    killers: [bySim(1, 30, "election"), byRules("kinds/election")],
  },
  {
    name: "light-requests-go-first",
    brokenRule: "semaphore: the queue is FIFO, so heavy requests do not starve",
    edits: [
      edit(
        "drivers/memory/lock.ts",
        "  return one.ticket < other.ticket ||",
        "  if (one.modeRequest.weight !== other.modeRequest.weight) {\n    return one.modeRequest.weight < other.modeRequest.weight;\n  }\n  return one.ticket < other.ticket ||",
      ),
    ],
    killers: [
      byRules(
        "kinds/semaphore",
        "a waiter for few permits is granted at once after a waiter for many aborts",
      ),
    ],
  },
  {
    name: "try-overtakes-a-waiter-for-more-permits",
    brokenRule: "semaphore: the queue is FIFO, so heavy requests do not starve",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "lock.isHeld && (lock.hasWaiters || !lock.fits(modeRequest))",
        "lock.isHeld && !lock.fits(modeRequest)",
      ),
      edit(
        "drivers/memory/lock.ts",
        "    this.#queue.splice(this.positionOf(waiter), 0, waiter);",
        "    if (waiter.request.deadline === null) {\n      this.#queue.unshift(waiter);\n      return;\n    }\n    this.#queue.splice(this.positionOf(waiter), 0, waiter);",
      ),
    ],
    killers: [
      byRules(
        "drivers/memory/driver",
        "semaphore: a waiter for many permits is never skipped by waiters for few",
      ),
    ],
  },
  {
    name: "memory-downgrade-leaves-room-for-a-writer",
    brokenRule: "read-write: a downgrade is atomic",
    edits: [
      edit(
        "drivers/memory/lock.ts",
        "    this.#used += 1 - entry.weight;\n",
        "    this.#used -= entry.weight;\n",
      ),
    ],
    killers: [
      bySim(1, 80, "read-write,memory"),
      byRules("drivers/memory/driver", "read-write: a downgrade admits readers and no writer"),
    ],
  },
  {
    name: "weight-is-ignored",
    brokenRule: "a request is granted if the sum of weights with the request stays within the limit",
    edits: [
      lua(
        "common/shared-lock-grants",
        "    if may_hold and used + weight > limit then",
        "    if may_hold and used >= limit then",
      ),
    ],
    killers: [bySim(1, 40, "server,semaphore")],
  },
  {
    name: "try-ignores-the-holders",
    brokenRule: "a request is granted if the sum of weights with the request stays within the limit",
    edits: [
      lua(
        "common/shared-lock-grants",
        "elseif first_waiter() or used + weight > limit then",
        "elseif first_waiter() or weight > limit then",
      ),
    ],
    killers: [bySim(1, 40, "server,read-write")],
  },
  {
    name: "downgrade-leaves-room-for-a-writer",
    brokenRule: "read-write: a downgrade is atomic",
    edits: [lua("common/shared-lock", "  used = used - weight + 1\n", "  used = used - weight\n")],
    killers: [bySim(1, 80, "server,read-write")],
  },
  {
    name: "limit-of-the-waiter-counts",
    brokenRule: "semaphore: only an explicit call changes the limit, and holders never exceed the limit",
    edits: [
      lua(
        "common/shared-lock-grants",
        "      waiter_kind, weight = mode_of(queue_entry)\n",
        "      waiter_kind, weight, limit = mode_of(queue_entry)\n",
      ),
    ],
    killers: [
      byServer(
        "drivers/redis/protocol/scripts/share-change",
        "a higher limit serves waiters, also those that requested",
      ),
      byRules("fake-redis/fake-redis", "semaphore: another limit rejects until the limit is changed for all"),
    ],
  },
  {
    name: "grant-of-a-crashed-reader-remains",
    brokenRule: "read-write: the grant of a crashed reader expires alone, by its TTL",
    edits: [
      lua(
        "common/shared-holders",
        "'ZRANGEBYSCORE', lock_key, '-inf', now_ms,",
        "'ZRANGEBYSCORE', lock_key, '-inf', 0,",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/share-grant", "replaces expired holders at"),
      byRules("fake-redis/fake-redis", "read-write: the expiry of one reader ends no other reader"),
    ],
  },
  {
    name: "lost-inquiry-is-not-repeated",
    brokenRule: "a lost inquiry is repeated when split readers retry, also for a writer without votes",
    edits: [
      lua(
        "common/shared-lock-grants",
        "  if first_weight and weight + first_weight > limit",
        "  if first_weight and first_weight > limit",
      ),
    ],
    killers: [byServer("drivers/redis/protocol/scripts/share-votes", "is requested back again at a repeat")],
  },
  {
    name: "writer-sends-no-inquiry",
    brokenRule: "a writer sends an inquiry to every later reader without a majority",
    edits: [
      lua(
        "common/shared-lock-grants",
        "    if weight + other_weight > limit and precedes(token, other) then",
        "    if other_weight > limit and precedes(token, other) then",
      ),
    ],
    killers: [
      byServer("drivers/redis/protocol/scripts/share-votes", "is requested back by an earlier writer from"),
    ],
  },
];
