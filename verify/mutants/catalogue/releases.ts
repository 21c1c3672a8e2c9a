import { byKept, byRules, byServer, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of releases and clean-ups. */
export const releases: readonly Mutant[] = [
  {
    name: "release-has-no-time-budget",
    brokenRule: "if the engine is unreachable, a release rejects after its own short budget",
    edits: [
      redis(
        "server/release-queue",
        "    this.#deadlines.schedule(release.deadline, this.#clock.now() + this.#budgetMs);\n",
        "",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/release", "a release fails in time if too")],
  },
  {
    name: "release-reads-no-reply-after-a-stall",
    brokenRule: "a stalled process reads the replies that have arrived before it reports an unknown outcome",
    edits: [
      redis(
        "server/release-queue",
        "if (now - dueAt > lateTimerMs && !deadline.hasGracePeriod) {",
        "if (now < dueAt) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/release", "a stalled process reads")],
  },
  {
    name: "release-is-sent-once",
    brokenRule:
      "a cancel is repeated until the deadline of its queue entry, and a release until the TTL has passed",
    edits: [
      redis(
        "server/release-queue",
        "const isRetried = isTransient(error) && now < release.until && !this.#isClosed;",
        "const isRetried = isTransient(error) && now < release.until && this.#isClosed;",
      ),
    ],
    killers: [byServer("integration/single/release-goes-on")],
  },
  {
    name: "release-ends-at-the-validity",
    brokenRule:
      "a release is repeated until the TTL has passed, also the TTL of an extension without a reply",
    edits: [edit("validity.ts", "return Math.max(until, engineUntil);", "return until + 0 * engineUntil;")],
    killers: [byServer("integration/single/release-goes-on")],
  },
  {
    name: "clean-up-ends-with-its-first-reply",
    brokenRule:
      "a clean-up ends when a release was answered with a server time after the latest time of the token's last request",
    hasCounterexample: true,
    edits: [redis("server/release-queue", "    if (delayMs < 0 || ", "    if (delayMs < Infinity || ")],
    killers: [
      byRules(
        "drivers/redis/single/late-clean-up",
        "a request that is executed after its clean-up leaves no grant",
      ),
      byRules("drivers/redis/single/late-clean-up", "a repeat that is executed after the release"),
      byRules("drivers/redis/redlock/late-clean-up", "a request that a node executes after its"),
    ],
  },
  {
    name: "clean-up-ends-before-the-latest-time",
    brokenRule: "a clean-up without a reply continues until no request can take effect at its latest time",
    edits: [redis("server/release-queue", "until + lateMs;", "until + Math.min(0, lateMs);")],
    killers: [byRules("drivers/redis/single/late-clean-up", "a clean-up without replies")],
  },
  {
    name: "refill-is-not-cleaned-up-after-its-latest-time",
    brokenRule: "a refill that is executed after the release of its lease leaves no grant",
    edits: [redis("redlock/held-grant", "    history.sent(latest);", "    history.sent(0 * latest);")],
    killers: [byRules("drivers/redis/redlock/late-clean-up", "a refill that a node executes after")],
  },
  {
    name: "answered-requests-repeat-the-release",
    brokenRule: "a reply on the same connection excludes a later execution, so the release is not repeated",
    edits: [
      redis(
        "redlock/release",
        'const earlier = name === "release" ? this.#grant.earlierRequestsOn(node) : undefined;',
        'const live = name === "release" ? this.#grant.earlierRequestsOn(node) : undefined;\n        const earlier = live && { latest: live.latest };',
      ),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "is released once")],
  },
  {
    name: "repeated-release-reports-not-held",
    brokenRule: "a release with a lost reply whose repeat replies not-held counts as released",
    edits: [
      redis(
        "server/release-call",
        "const isRepeat = this.#isUncertain || !sameConnection;",
        "const isRepeat = (this.#isUncertain && this.failures < 0) || !sameConnection;",
      ),
    ],
    killers: [byRules("fake-redis/fake-redis", "of a release: the repeat counts as released")],
  },
  {
    name: "clean-up-hides-the-grant-from-its-release",
    brokenRule:
      "a release reports whether the lease was held, even if the clean-up of a late reply precedes the release",
    edits: [redis("server/release-call", "      this.#queue.grantFound(this);\n", "")],
    killers: [byKept()],
  },
  {
    name: "release-repeated-by-the-client-library-reports-not-held",
    brokenRule:
      "a release with a lost reply whose repeat replies not-held counts as released, also if the client library sent the repeat",
    edits: [
      redis(
        "server/release-call",
        "const isRepeat = this.#isUncertain || !sameConnection;",
        "const isRepeat = this.#isUncertain || (!sameConnection && this.failures < 0);",
      ),
    ],
    killers: [byServer("integration/single/resent-release")],
  },
  {
    name: "nothing-is-released-after-a-failed-acquire",
    brokenRule: "after an unknown outcome the token is released in the background",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request",
        "    if (this.history.wasAnswered || this.history.latest > 0) {",
        '    if (this.token === "-") {',
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a grant without a reply, to a try, is released"),
      byServer("drivers/redis/single/unknown-outcome", "the grant is released in the background"),
    ],
  },
  {
    name: "nothing-is-released-after-a-failed-election",
    brokenRule: "after an unknown outcome the token is released in the background",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/grant-registry",
        "      if (voteRequest.residue.mayExist) {\n",
        '      if (voteRequest.residue.mayExist && attempt.token === "-") {\n',
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/lost-replies", "a grant without a reply is cleaned up when the caller"),
    ],
  },
  {
    name: "clean-up-ends-a-later-vote",
    brokenRule: "a clean-up for a node that did not vote does not end a later vote",
    edits: [
      redis(
        "redlock/vote-sender",
        "    node.releaseQueue.cancelCleanUp(token);",
        '    if (token === "") node.releaseQueue.cancelCleanUp("");',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/returned-votes",
        "a pending return of a vote is dropped once the node votes for",
      ),
    ],
  },
  {
    name: "clean-up-ends-a-later-refill",
    brokenRule: "a clean-up for a node that did not vote does not end a later refill",
    edits: [
      redis(
        "redlock/grant-registry",
        "      releaseQueue.cancelCleanUp(token); // a node in",
        '      if (key === "") releaseQueue.cancelCleanUp(token); // a node in',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/returned-votes",
        "a pending return of a vote does not end the grant of a refilled",
      ),
    ],
  },
];
