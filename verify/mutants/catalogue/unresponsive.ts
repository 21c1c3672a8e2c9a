import { byRules, byServer, bySim, redis, type Mutant } from "../mutant.ts";

/** Mutants of calls that a server leaves unanswered. */
export const unresponsiveServers: readonly Mutant[] = [
  {
    name: "timer-of-an-answered-call-runs-on",
    brokenRule: "timer not cleared: nothing is left behind by a call that was answered (7)",
    edits: [redis("server/batch", "    this.#clock.clearTimer(call.timer);\n", "")],
    killers: [byRules("drivers/redis/server/batch", "after an answer no timer is left")],
  },
  {
    name: "operations-share-an-answer",
    brokenRule: "operations issued in one turn travel as one script call, each with its own answer (7)",
    edits: [
      redis(
        "server/batch",
        "operation.answered({ value: values[index],",
        "operation.answered({ value: values[0 * index],",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/redis/server/batch", "operations of one turn travel as one call"),
    ],
  },
  {
    name: "a-call-without-its-time-limit",
    brokenRule: "each with its own small timeout (4.2)",
    edits: [
      redis(
        "server/batch",
        "      call.fail(timeoutError(this.#timeoutMs));",
        "      void timeoutError(this.#timeoutMs);",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "no answer in time is told as a failure")],
  },
  {
    name: "silent-node-is-waited-for-each-time",
    brokenRule:
      "each with its own small timeout (4.2): requests do not pile up before a node that does not answer",
    edits: [redis("server/batch", "      this.#responsiveness.callTimedOut(call.callNumber);\n", "")],
    killers: [
      byServer("integration/redlock/minority", "2 000 acquisitions do not pile up before it"),
      byServer(
        "integration/single/silent-server",
        "frozen: ioredis that keeps every command keeps few calls",
      ),
    ],
  },
  {
    name: "silent-server-is-asked-past-the-batches",
    brokenRule:
      "after a timeout one probe is under way and other calls are refused at once: also those that are not batched",
    edits: [
      redis(
        "server/bounded-calls",
        "      throw responsiveness.rejection();\n",
        "      responsiveness.rejection();\n",
      ),
    ],
    killers: [
      byServer(
        "integration/single/silent-server",
        "frozen: ioredis that keeps every command keeps few calls",
      ),
    ],
  },
  {
    name: "silence-ends-with-any-late-answer",
    brokenRule: "calls that the client library still keeps count as unanswered: no more are added to them",
    edits: [redis("server/responsiveness", "if (other <= callNumber) {", "if (other > 0) {")],
    killers: [
      byRules("drivers/redis/server/batch-timeouts", "a late answer to the first of two ends no silence"),
    ],
  },
  {
    name: "silence-ends-with-what-its-client-drops",
    brokenRule: "only an answer of the server ends a silence: who was refused is not called for nothing",
    edits: [
      redis(
        "server/responsiveness",
        "      this.#unanswered.delete(callNumber);\n    }\n  }",
        "      this.callAnswered(callNumber);\n    }\n  }",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "a call that its client drops is no answer")],
  },
  {
    name: "probe-of-a-silent-server-is-not-repeated-later",
    brokenRule: "one probe is under way: the next one comes after a part of the silence",
    edits: [
      redis(
        "server/responsiveness",
        "Math.max(timeoutMs, probeFraction * (now - this.#since))",
        "timeoutMs * (probeFraction * 10)",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "a probe without an answer is repeated")],
  },
  {
    name: "message-ends-no-silence",
    brokenRule: "a message ends the silence, and the grant that it brings is confirmed",
    edits: [
      redis(
        "server/server",
        "        this.#notifications.dispatch(text);\n        this.#responsiveness.messageReceived();\n",
        "        this.#notifications.dispatch(text);\n",
      ),
    ],
    killers: [
      byServer(
        "integration/single/silent-server",
        "confirms a grant by message, although it answers nothing",
      ),
    ],
  },
  {
    name: "renewals-wait-after-a-silence",
    brokenRule: "after a silence extensions are sent at once, and first",
    edits: [
      redis("single/request-registry", "      listener.engineRecovered();\n", "      void listener;\n"),
    ],
    killers: [byServer("integration/single/silent-server", "is asked for renewals first when it is back")],
  },
  {
    name: "releases-wait-after-a-silence",
    brokenRule: "after a silence releases are sent at once, behind the extensions",
    edits: [redis("single/request-registry", "    this.releaseQueue.recovered(server);\n", "")],
    killers: [byServer("integration/single/silent-server", "is asked for renewals first when it is back")],
  },
];
