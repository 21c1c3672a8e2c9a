import { byKept, byRules, byServer, redis, type Mutant } from "../mutant.ts";

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
        "single/request-registry",
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
    edits: [redis("single/driver", "    this.#releaseQueue.inUse.extend(token, ttlMs);\n", "")],
    killers: [byRules("drivers/redis/single/late-requests", "does not end an extended lease")],
  },
  {
    name: "late-message-ends-what-another-process-adopted",
    brokenRule:
      "a message older than its grant's TTL is not acted on: another process may have extended the grant",
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
    killers: [byRules("drivers/redis/server/batch-timeouts", "who stood still reads first")],
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
    killers: [byRules("drivers/redis/server/batch-timeouts", "who stood still reads first")],
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
];
