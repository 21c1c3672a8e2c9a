import { byKept, byRules, byServer, edit, redis, type Mutant } from "../mutant.ts";

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
    edits: [edit("runtime/clock.ts", "return setImmediate(action);", "return setImmediate(action).unref();")],
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
    killers: [byKept()],
  },
  {
    name: "grant-by-late-notification-is-not-released",
    brokenRule: "a grant by notification for a token that no longer waits is released at once",
    hasCounterexample: true,
    edits: [
      redis(
        "single/request-registry",
        "    } else if (key !== undefined) {\n      const keys",
        '    } else if (key !== undefined && key === "") {\n      const keys',
      ),
    ],
    killers: [
      byRules("drivers/redis/single/late-requests", "a grant by notification to a waiter that has left is"),
    ],
  },
  {
    name: "grant-in-use-is-not-remembered",
    brokenRule:
      "a late notification of a lease in use releases nothing, for any number of leases in the process",
    edits: [redis("server/grants-in-use", "    this.#grants.set(token, grant);\n", "")],
    killers: [byServer("integration/single/late-grants", "leases in use")],
  },
  {
    name: "extended-grant-is-forgotten",
    brokenRule: "a late notification of a lease in use releases nothing, for any age of its grant",
    edits: [redis("single/driver", "    this.#releaseQueue.inUse.extend(token, ttlMs);\n", "")],
    killers: [byRules("drivers/redis/single/late-requests", "does not end an extended lease")],
  },
  {
    name: "expired-grant-still-counts-as-in-use",
    brokenRule: "a grant of a request that is executed after the expiry of its lease is released",
    edits: [redis("server/grants-in-use", "      grant.isEnded = true; //", "      //")],
    killers: [byRules("drivers/redis/single/repeated-try", "after the expiry of its lease")],
  },
  {
    name: "late-notification-releases-an-adopted-grant",
    brokenRule:
      "a notification older than its grant's TTL is ignored, because another process may have extended the grant",
    edits: [
      redis(
        "single/request-registry",
        "serverClock.micros() - serverMicros >= ttlMs * 1000",
        "serverMicros < 0",
      ),
    ],
    killers: [byServer("integration/single/late-grants", "another process has adopted")],
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
    name: "vote-by-late-notification-is-not-released",
    brokenRule: "a grant by notification for a token that no longer waits is released at once",
    hasCounterexample: true,
    edits: [
      redis(
        "redlock/grant-registry",
        "      if (key !== undefined) {\n        const { token } = grant;",
        '      if (key !== undefined && key === "") {\n        const { token } = grant;',
      ),
    ],
    killers: [
      byRules("drivers/redis/redlock/late-requests", "a grant by notification to a waiter that has left is"),
    ],
  },
  {
    name: "grant-by-late-reply-is-not-released",
    brokenRule: "a grant by reply for a token that no longer waits is released at once",
    hasCounterexample: true,
    edits: [
      redis("single/request", "    if (isQueued || status ===", '    if (this.token === "" && status ==='),
    ],
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
    edits: [
      redis(
        "single/request",
        "    if (isQueued || status ===",
        '    if ((isQueued && this.token === "") || status ===',
      ),
    ],
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
