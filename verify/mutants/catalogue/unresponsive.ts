import { byRules, byServer, bySim, redis, type Mutant } from "../mutant.ts";

/** Mutants of calls that a server leaves unanswered. */
export const unresponsiveServers: readonly Mutant[] = [
  {
    name: "timer-of-a-call-remains-after-its-reply",
    brokenRule: "a call with a reply has no timer",
    edits: [redis("server/batch", "    this.#clock.clearTimer(call.timer);\n", "")],
    killers: [byRules("drivers/redis/server/batch", "after a reply no timer is")],
  },
  {
    name: "operations-share-a-reply",
    brokenRule: "operations of one turn share one script call, and each has its own reply",
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
    brokenRule: "each call has a short timeout",
    edits: [
      redis(
        "server/batch",
        "      call.fail(timeoutError(this.#timeoutMs));",
        "      void timeoutError(this.#timeoutMs);",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "a call without a reply in time")],
  },
  {
    name: "unresponsive-node-is-awaited-each-time",
    brokenRule: "each call has a short timeout, so requests for an unresponsive node do not pile up",
    edits: [redis("server/batch", "      this.#responsiveness.callTimedOut(call.callNumber);\n", "")],
    killers: [
      byServer("integration/redlock/minority", "of which one is frozen: 2 000 acquisitions"),
      byServer(
        "integration/single/silent-server",
        "frozen: ioredis that keeps every command keeps few calls",
      ),
    ],
  },
  {
    name: "calls-outside-of-batches-reach-an-unresponsive-server",
    brokenRule:
      "after a timeout one probe is in flight, and other calls are refused at once, also calls outside of batches",
    edits: [
      redis(
        "server/bounded-calls",
        "      throw withServer(responsiveness.rejection(), this.#options.connection);\n",
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
    name: "any-late-reply-ends-the-unresponsive-state",
    brokenRule:
      "calls that the client library still holds count as unanswered, so no further calls join them",
    edits: [redis("server/responsiveness", "if (other <= callNumber) {", "if (other > 0) {")],
    killers: [byRules("drivers/redis/server/batch-timeouts", "a late reply to the first of two calls")],
  },
  {
    name: "dropped-call-ends-the-unresponsive-state",
    brokenRule:
      "only a reply of the server ends its unresponsive state, and not a call that the client library dropped",
    edits: [
      redis(
        "server/responsiveness",
        "      this.#unanswered.delete(callNumber);\n    }\n  }",
        "      this.callAnswered(callNumber);\n    }\n  }",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "a call that its client drops ends")],
  },
  {
    name: "probe-of-an-unresponsive-server-has-no-backoff",
    brokenRule:
      "one probe is in flight, and the next probe follows after a fraction of the unresponsive time",
    edits: [
      redis(
        "server/responsiveness",
        "Math.max(timeoutMs, probeFraction * (now - this.#since))",
        "timeoutMs * (probeFraction * 10)",
      ),
    ],
    killers: [byRules("drivers/redis/server/batch-timeouts", "a probe without a reply is")],
  },
  {
    name: "notification-does-not-end-the-unresponsive-state",
    brokenRule: "a notification ends the unresponsive state, and its grant is confirmed",
    edits: [
      redis(
        "server/server",
        "        this.#notifications.dispatch(text);\n        this.#responsiveness.messageReceived();\n",
        "        this.#notifications.dispatch(text);\n",
      ),
    ],
    killers: [byServer("integration/single/silent-server", "confirms a grant by notification, although")],
  },
  {
    name: "renewals-wait-after-a-recovery",
    brokenRule: "when a server recovers, extensions are sent at once, before other requests",
    edits: [
      redis("single/request-registry", "      listener.engineRecovered();\n", "      void listener;\n"),
    ],
    killers: [byServer("integration/single/silent-server", "gets renewals first when it is back")],
  },
  {
    name: "releases-wait-after-a-recovery",
    brokenRule: "when a server recovers, releases are sent at once, after the extensions",
    edits: [redis("single/request-registry", "    this.releaseQueue.recovered(server);\n", "")],
    killers: [byServer("integration/single/silent-server", "gets renewals first when it is back")],
  },
];
