import { byKept, byRules, byServer, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of releases and clean-ups (1, 3 and core-2, 3.2). */
export const releases: readonly Mutant[] = [
  {
    name: "late-answer-ends-what-is-being-released",
    brokenRule:
      "true: it was still ours (release): what takes back a late answer's place does not come before the release",
    edits: [
      redis("redlock/grant-registry", "      release.lateQueueEntry(node, cleanUp);", "      cleanUp();"),
    ],
    killers: [byRules("drivers/redis/redlock/late-requests", "a lease was ours where its release meets")],
  },
  {
    name: "release-is-waited-for-until-it-fails",
    brokenRule: "where the engine cannot be reached it rejects after its own small budget (release)",
    edits: [
      redis(
        "server/release-queue",
        "    this.#deadlines.schedule(release.deadline, this.#clock.now() + this.#budgetMs);\n",
        "",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/release", "it is told in time that too few answered")],
  },
  {
    name: "release-reads-no-answer-behind-a-stall",
    brokenRule: "a process that stood still reads what is there before it says that it is not known",
    edits: [
      redis(
        "server/release-queue",
        "if (now - dueAt > lateTimerMs && !deadline.hasGracePeriod) {",
        "if (now < dueAt) {",
      ),
    ],
    killers: [byRules("drivers/redis/redlock/release", "a process that stood still")],
  },
  {
    name: "release-is-sent-once",
    brokenRule: "cancel is re-sent until the member's deadline, release until the TTL has passed (3)",
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
    name: "release-gives-up-at-the-validity",
    brokenRule:
      "release is re-sent until the TTL has passed (3): also that of an extension without an answer",
    edits: [edit("validity.ts", "return Math.max(until, engineUntil);", "return until + 0 * engineUntil;")],
    killers: [byServer("integration/single/release-goes-on")],
  },
  {
    name: "clean-up-ends-with-its-first-answer",
    brokenRule:
      "a clean-up ends when a release was answered with a server time behind the latest time of the token's last request (core-2, 3.2)",
    hasCounterexample: true,
    edits: [redis("server/release-queue", "    if (delayMs < 0 || ", "    if (delayMs < Infinity || ")],
    killers: [
      byRules("drivers/redis/single/late-clean-up", "a request that is executed behind its clean-up"),
      byRules(
        "drivers/redis/single/late-clean-up",
        "a repeat that is executed behind the release of its lease",
      ),
      byRules("drivers/redis/redlock/late-clean-up", "what a node executes behind the clean-up"),
    ],
  },
  {
    name: "clean-up-forgets-what-may-come-late",
    brokenRule:
      "a clean-up without an answer goes on until what a request may still do at its latest time is forgotten (core-2, 3.2)",
    edits: [redis("server/release-queue", "(latest > 0 ? Math.max(0, delayMs) : 0)", "Math.min(0, delayMs)")],
    killers: [byRules("drivers/redis/single/late-clean-up", "a clean-up without answers outlasts")],
  },
  {
    name: "refill-is-not-cleaned-up-behind-its-latest-time",
    brokenRule: "a refill that is executed behind the release of its lease leaves nothing (core-2, 3.2)",
    edits: [redis("redlock/held-grant", "    history.sent(latest);", "    history.sent(0 * latest);")],
    killers: [
      byRules("drivers/redis/redlock/late-clean-up", "a refill that a node executes behind the release"),
    ],
  },
  {
    name: "repeated-release-says-not-held",
    brokenRule: "a release whose reply was lost and whose repeat says not-held counts as released (3)",
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
      "a release tells whether the grant was ours, also where a clean-up of a late answer came before it (core-2, 4.2)",
    edits: [redis("server/release-call", "      this.#queue.grantFound(this);\n", "")],
    killers: [byKept()],
  },
  {
    name: "release-that-the-client-sent-again-says-not-held",
    brokenRule:
      "a release whose reply was lost and whose repeat says not-held counts as released (3): by whomever it was repeated",
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
    brokenRule: "after an unknown outcome the token is released in the background (1)",
    hasCounterexample: true,
    edits: [redis("single/request", '    if (this.token !== "") {', '    if (this.token === "-") {')],
    killers: [
      byRules("drivers/redis/single/late-requests", "what a try was granted without an answer is taken back"),
      byServer("drivers/redis/single/unknown-outcome", "the grant is taken back in the background"),
    ],
  },
  {
    name: "nothing-is-released-after-a-failed-election",
    brokenRule: "after an unknown outcome the token is released in the background (1)",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/grant-registry",
        "      if (voteRequest.residue.mayExist) {\n",
        '      if (voteRequest.residue.mayExist && attempt.token === "-") {\n',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/lost-replies",
        "what was granted without an answer is taken back when the caller gives up",
      ),
    ],
  },
  {
    name: "what-is-asked-for-again-is-given-back-behind-that",
    brokenRule:
      "what a node was to give back while it did not vote is not taken from it behind a later vote (8)",
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
        "what a node got back while it did not vote is not taken from it again once it does",
      ),
    ],
  },
  {
    name: "what-was-won-is-given-back-behind-that",
    brokenRule:
      "what a node was to give back while it did not vote is not taken from it when it is filled again (8)",
    edits: [
      redis(
        "redlock/grant-registry",
        "      releaseQueue.cancelCleanUp(token); // given back by",
        '      if (key === "") releaseQueue.cancelCleanUp(token); // given back by',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/returned-votes",
        "what a node is filled with again is not taken from it by what it was to give back before",
      ),
    ],
  },
  {
    name: "each-answer-to-a-release-counts",
    brokenRule: "a release is told to have been ours where a majority of the nodes says so (4)",
    edits: [
      redis(
        "server/release-queue",
        "    this.#retries.cancel(release); // a late reply may",
        "    if (release.isEnded) this.#retries.cancel(release); // a late reply may",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/returned-votes",
        "a node that is told twice to release, as its answer is late, counts once",
      ),
    ],
  },
];
