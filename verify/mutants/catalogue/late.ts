import { byKept, byRules, byServer, edit, redis, type Mutant } from "../mutant.ts";

/** What is late, lost or repeated, and what is given back: sections 1 and 3. */
export const lateReplies: readonly Mutant[] = [
  {
    name: "a-place-is-given-up-for-drift",
    brokenRule: "an answer contradicts an estimate only by more than clocks may drift apart (core, 3.3)",
    edits: [redis("server/server-clock", "(allowedDriftRate - driftRate)", "0")],
    killers: [byRules("drivers/redis/server/server-clock", "however old its answer is")],
  },
  {
    name: "a-later-place-is-the-earlier-one-for-drift",
    brokenRule:
      "tickets begin anew only where the requests with the former ones give up their places (core, 3.3)",
    edits: [
      redis(
        "server/server-clock",
        "ageMs * allowedDriftRate + suspendedMs",
        "ageMs * driftRate + suspendedMs",
      ),
    ],
    killers: [byRules("drivers/redis/server/server-clock", "a later ticket goes before an earlier one only")],
  },
  {
    name: "queue-entry-ends-by-the-estimate-alone",
    brokenRule: "a waiter is not passed over before its own deadline (core-2 3.2)",
    edits: [
      redis(
        "server/server-clock",
        "    return errorMs + (ageMs + waitMs) * allowedDriftRate;\n",
        "    return 0 * (errorMs + (ageMs + waitMs) * allowedDriftRate);\n",
      ),
    ],
    killers: [byKept()],
  },
  {
    name: "node-ends-queue-entry-by-client-clock",
    brokenRule:
      "a clean-up ends when a release was answered, or the node has ended the entry by its own clock (core-2 3.2)",
    edits: [
      redis("redlock/grant-registry", "deadline + this.#options.nodeSet.lagMs(voteRequest.node)", "deadline"),
    ],
    killers: [byKept()],
  },
  {
    name: "late-message-is-not-answered",
    brokenRule:
      "any grant by message for a token that no longer waits here is answered by release at once (3)",
    hasCounterexample: true,
    edits: [
      redis(
        "single/driver",
        "    } else if (key !== undefined) {\n      const keys",
        '    } else if (key !== undefined && key === "") {\n      const keys',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/single/late-requests",
        "what a waiter that gave up is granted by message is given back at once",
      ),
    ],
  },
  {
    name: "grant-in-use-is-not-remembered",
    brokenRule: "a late message of a lease in use releases nothing, however many leases the process holds",
    edits: [redis("server/grants-in-use", "    this.#grants.set(token, grant);\n", "")],
    killers: [byServer("integration/single/late-grants", "leases in use")],
  },
  {
    name: "extended-grant-is-forgotten",
    brokenRule: "a late message of a lease in use releases nothing, however long ago it was granted",
    edits: [redis("single/driver", "    this.releaseQueue.inUse.extend(token, ttlMs);\n", "")],
    killers: [byRules("drivers/redis/single/late-requests", "does not end an extended lease")],
  },
  {
    name: "late-message-ends-what-another-process-adopted",
    brokenRule:
      "a message older than its grant's TTL is not acted on: another process may have extended the grant",
    edits: [
      redis("single/driver", "serverClock.micros() - serverMicros >= ttlMs * 1000", "serverMicros < 0"),
    ],
    killers: [byServer("integration/single/late-grants", "another process has adopted")],
  },
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
    name: "given-lease-is-brought-back",
    brokenRule:
      "a late request's grant with the same token is another grant than the one that was given away",
    edits: [redis("single/driver", " && Number(first) > fencingToken", " && fencingToken < 0n")],
    killers: [byServer("integration/single/late-answers", "request does not bring a given lease back")],
  },
  {
    name: "late-process-never-gives-a-node-up",
    brokenRule: "a process that is always late waits once more for a node, and not for ever",
    edits: [redis("server/batch", " && !call.hasGracePeriod", "")],
    killers: [byRules("drivers/redis/server/batch", "who stood still reads first")],
  },
  {
    name: "late-process-does-not-read-what-is-there",
    brokenRule: "a process that stood still reads what a node has answered before it gives it up",
    edits: [
      redis(
        "server/batch",
        "if (this.#clock.now() - dueAt > lateTimerMs && !call.hasGracePeriod) {",
        "if (this.#clock.now() < dueAt) {",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch", "who stood still reads first")],
  },
  {
    name: "late-message-of-a-node-is-not-answered",
    brokenRule:
      "any grant by message for a token that no longer waits here is answered by release at once (3)",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/grant-registry",
        "      if (key !== undefined) {\n        const { token } = grant;",
        '      if (key !== undefined && key === "") {\n        const { token } = grant;',
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/late-requests",
        "what a waiter that gave up is granted by message is given back at once",
      ),
    ],
  },
  {
    name: "late-reply-is-not-answered",
    brokenRule: "any grant by reply for a token that no longer waits here is answered by release at once (3)",
    hasCounterexample: true,
    edits: [
      redis("single/request", "    if (hasResidue) {\n", '    if (hasResidue && this.token === "") {\n'),
    ],
    killers: [
      byRules("fake-redis/fake-redis", "a grant that comes after the caller gave up is released at once"),
    ],
  },
  {
    name: "late-reply-of-a-node-is-not-answered",
    brokenRule: "any grant by reply for a token that no longer waits here is answered by release at once (3)",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/vote-request",
        "    if (status === 1) {\n      this.#host.handleLateReply(",
        "    if (status === 7) {\n      this.#host.handleLateReply(",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/late-requests",
        "what is granted behind its own giving back is given back again",
      ),
    ],
  },
  {
    name: "late-place-in-the-queue-stays",
    brokenRule: "order holds only within one connection and one script: a late answer may have queued us (3)",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request",
        "const hasResidue = status === 1 || (status === 0 && Number(answer[2]) >= 0);",
        "const hasResidue = status === 1;",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/single/late-requests",
        "a place in the queue that is asked for before the leaving",
      ),
    ],
  },
  {
    name: "late-place-on-a-node-stays",
    brokenRule: "order holds only within one connection and one script: a late answer may have queued us (3)",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/vote-request",
        "} else if (status === 0 && Number(values[2]) >= 0) {",
        "} else if (status === 0 && Number(values[2]) < -1) {",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/redlock/late-requests",
        "a place in the queue that is had behind the leaving is given back",
      ),
    ],
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
        "server/release-queue",
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
    edits: [redis("server/release-queue", "      this.#queue.grantFound(this);\n", "")],
    killers: [byKept()],
  },
  {
    name: "release-that-the-client-sent-again-says-not-held",
    brokenRule:
      "a release whose reply was lost and whose repeat says not-held counts as released (3): by whomever it was repeated",
    edits: [
      redis(
        "server/release-queue",
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
        "      if (voteRequest.mayHoldResidue) {\n",
        '      if (voteRequest.mayHoldResidue && attempt.token === "-") {\n',
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
        "redlock/vote-request",
        "    this.node.releaseQueue.cancelCleanUp(this.#host.token);",
        '    if (this.#host.token === "") this.node.releaseQueue.cancelCleanUp("");',
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
        "    this.#retries.cancel(release); // the answer may",
        "    if (release.isEnded) this.#retries.cancel(release); // the answer may",
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
