import { byKept, byRules, byServer, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of late, lost or repeated requests and replies. */
export const lateReplies: readonly Mutant[] = [
  {
    name: "held-try-forgets-its-earlier-request",
    brokenRule: "a try that was refused cleans up while an earlier request of it may still be executed",
    edits: [
      redis(
        "single/request",
        "if (this.history.latest > 0) {\n        this.#cleanUp();",
        "if (this.history.latest < 0) {\n        this.#cleanUp();",
      ),
    ],
    killers: [byRules("drivers/redis/single/repeated-try", "leaves no grant of its first request")],
  },
  {
    name: "refused-requests-are-cleaned-up",
    brokenRule: "a request that no server can have executed needs no clean-up",
    edits: [
      redis(
        "single/request",
        "if (this.history.wasAnswered || this.history.latest > 0) {",
        "if (this.wasSent) {",
      ),
    ],
    killers: [byRules("drivers/redis/single/repeated-try", "sends no clean-up")],
  },
  {
    name: "idle-loop-sleeps-through-a-due-timer",
    brokenRule: "a due timer runs although nothing else wakes the event loop",
    edits: [edit("runtime/clock.ts", "real.setImmediate(action)", "real.setImmediate(action).unref()")],
    killers: [byRules("runtime/clock", "a process that only waits for input")],
  },
  {
    name: "ticket-restarts-because-of-drift",
    brokenRule: "a reply contradicts an estimate only by more than clocks may drift apart",
    edits: [redis("server/server-clock", "(allowedDriftRate - driftRate)", "0")],
    killers: [byRules("drivers/redis/server/server-clock", "however old its reply")],
  },
  {
    name: "drift-makes-a-later-ticket-the-earlier-one",
    brokenRule: "tickets restart only if the requests with former tickets leave their queues",
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
    brokenRule: "a waiter is not skipped before its own deadline",
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
      "a clean-up ends when a release was answered, or when the node has expired the entry by its own clock",
    edits: [
      redis("redlock/grant-registry", "deadline + this.#options.nodeSet.lagMs(voteRequest.node)", "deadline"),
    ],
    killers: [byRules("drivers/redis/redlock/late-clean-up", "the slow clock of its node")],
  },
  {
    name: "grant-is-forgotten-after-twice-its-ttl",
    brokenRule:
      "no time ends the use of a grant, because another process or the watchdog thread may have extended the grant",
    hasCounterexample: true,
    edits: [
      redis("single/request", "this.server.msUntil(this.history.latest)", "2 * this.#request.ttlMs"),
      redis(
        "single/request-registry",
        "(request) => this.#grantedEarly.delete(request.token)",
        "(request) => this.releasing(request.token)?.releasing()",
      ),
    ],
    killers: [
      bySim(1, 100, "mutex,server,storm"),
      byServer("integration/single/late-answers", "does not release the adopted lease"),
      byServer("watchdog-thread/blocked", "is read after the block"),
    ],
  },
  {
    name: "votes-are-forgotten-after-the-largest-ttl",
    brokenRule:
      "no time ends the use of a grant, because another process or the watchdog thread may have extended the grant",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/grant-registry",
        "({ token }) => this.#grants.delete(token)",
        "(held) => {\n      held.isEnded = true;\n      this.#grants.delete(held.token);\n    }",
      ),
      redis("redlock/driver", "longestDelayMs(settings", "0 * longestDelayMs(settings"),
    ],
    killers: [
      bySim(1, 150, "mutex,quorum,storm"),
      byServer("integration/redlock/transfer", "that its former process reads late"),
    ],
  },
  {
    name: "late-replies-are-ignored",
    brokenRule: "no lock stays free for more than 1 s while a caller waits and no message is lost",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request",
        "if (isUnusedEntry || isUnusedGrant) {",
        "if (isUnusedEntry && isUnusedGrant) {",
      ),
    ],
    killers: [bySim(1, 60, "reordered,server")],
  },
  {
    name: "later-grant-of-a-token-in-use-remains",
    brokenRule:
      "a late grant with a greater number than the grant in use is released, because no lease has that number",
    edits: [redis("single/request", " || Number(answer[1]) > inUse)", ")")],
    killers: [byRules("drivers/redis/single/repeated-try", "after the expiry of its lease")],
  },
  {
    name: "release-leaves-the-queue-entry-of-a-late-poll",
    brokenRule:
      "the release of a lease removes the queue entry that a late poll of its request may have added",
    edits: [redis("single/driver", 'residue?.queueArgs ?? ""', 'residue?.queueArgs.slice(0, 0) ?? ""')],
    killers: [
      byRules("drivers/redis/single/late-clean-up", "after the release of its lease leaves no queue entry"),
    ],
  },
  {
    name: "grant-to-an-unknown-token-is-released",
    brokenRule: "a grant by notification for an unknown token is ignored, because another process may use it",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request-registry",
        "    this.#requestOf(grant.token)?.granted(grant);\n",
        `    const [request, key] = [this.#requestOf(grant.token), this.keySpace.keyOf(grant.lock) ?? ""];
    request?.granted(grant);
    const release = { key, keys: this.keysOf(key), token: grant.token, queueArgs: "", until: Infinity };
    void (request ?? this.releaseQueue.cleanUp(release));
`,
      ),
    ],
    killers: [
      byRules("drivers/redis/single/clones-apart", "a clone: one server leaves alone a grant of the other"),
      byServer("integration/single/late-grants", "another process has adopted"),
    ],
  },
  {
    name: "transferred-lease-is-revived",
    brokenRule: "the grant of a late request with the same token is not the transferred grant",
    edits: [redis("single/driver", " && Number(first) > fencingToken", " && fencingToken < 0n")],
    killers: [byServer("integration/single/late-answers", "'s request does not revive a transferred")],
  },
  {
    name: "late-process-waits-for-a-node-forever",
    brokenRule: "a process that is always late waits for a node once more, but not forever",
    edits: [redis("server/batch", " && !call.hasGracePeriod", "")],
    killers: [byRules("drivers/redis/server/batch-timeouts", "after a stall the reply")],
  },
  {
    name: "late-process-does-not-read-arrived-replies",
    brokenRule: "a stalled process reads the replies that have arrived before it fails a call",
    edits: [
      redis(
        "server/batch",
        "if (this.#clock.now() - dueAt > lateTimerMs && !call.hasGracePeriod) {",
        "if (this.#clock.now() < dueAt) {",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "after a stall the reply")],
  },
  {
    name: "grant-by-late-reply-is-not-released",
    brokenRule: "a grant by reply for a token that no longer waits is released at once",
    hasCounterexample: true,
    edits: [redis("single/request", "if (isUnusedEntry || isUnusedGrant) {", "if (isUnusedEntry) {")],
    killers: [byRules("fake-redis/fake-redis", "a grant after the caller's timeout is released at once")],
  },
  {
    name: "vote-by-late-reply-is-not-released",
    brokenRule: "a grant by reply for a token that no longer waits is released at once",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/vote-request",
        "    if (status === acquireStatus.granted) {\n      this.#host.handleLateReply(",
        "    if (status === 7) {\n      this.#host.handleLateReply(",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/late-requests", "a grant that follows its own release is released"),
    ],
  },
  {
    name: "late-queue-entry-remains",
    brokenRule:
      "order holds only within one connection and one script, so a late request may have created a queue entry",
    hasCounterexample: true,
    edits: [redis("single/request", "if (isUnusedEntry || isUnusedGrant) {", "if (isUnusedGrant) {")],
    killers: [byRules("drivers/redis/single/late-requests", "a queue entry that is added after its waiter")],
  },
  {
    name: "late-queue-entry-on-a-node-remains",
    brokenRule:
      "order holds only within one connection and one script, so a late request may have created a queue entry",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/vote-request",
        "} else if (status === acquireStatus.held && Number(values[2]) >= 0) {",
        "} else if (status === acquireStatus.held && Number(values[2]) < -1) {",
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/late-requests", "a queue entry that is added after its waiter has"),
    ],
  },
];
