import { byRules, byServer, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** Inside a process: the local line, leases and their end, renewal, timers; sections 6 and 7. */
export const inProcess: readonly Mutant[] = [
  {
    name: "everybody-in-line-contends",
    breaks: "only the head has a request on the server (6)",
    edits: [
      edit("line.ts", "if (next && !this.#contender && !this.#holder) {", "if (next && !this.#holder) {"),
    ],
    killers: [bySim(1, 60), byRules("line", "only the first in line contends")],
  },
  {
    name: "who-leaves-the-line-stops-it",
    breaks: "aborted or timed-out waiters leave the line without breaking it (6)",
    edits: [
      edit(
        "line.ts",
        "      this.#contender = undefined;\n    }\n    this.#advance();",
        "      this.#contender = undefined;\n      return;\n    }\n    this.#advance();",
      ),
    ],
    killers: [byRules("line", "a contender that leaves hands its turn on")],
  },
  {
    name: "a-run-without-end",
    breaks:
      "at most handover.max times in a row and for at most handover.maxMs; then passOn lets the other processes in (6)",
    edits: [
      edit(
        "line.ts",
        "const runGoesOn = this.#handovers < limits.max && now - this.#runSince < limits.maxMs;",
        "const runGoesOn = limits.max > 0 && now >= this.#runSince;",
      ),
    ],
    killers: [byRules("line", "after so many hand-overs the hold is passed on")],
  },
  {
    name: "what-is-lost-is-handed-over",
    breaks: "handed over only a lease that is valid (6)",
    edits: [
      edit("acquire.ts", "return renew && hold.isOurs && used", "return renew && used"),
      edit(
        "acquire.ts",
        " && leftOf(hold.validity, clock) >= needed;",
        " && needed > 0 && leftOf(hold.validity, clock) < Infinity;",
      ),
      edit(
        "hold.ts",
        "    if (this.lossNow()) {\n      // Ours no more",
        "    if (this.#loss) {\n      // Ours no more",
      ),
    ],
    killers: [byRules("hold-runs", "a lease that ended while the event loop was blocked is nobody's")],
  },
  {
    name: "handed-over-with-little-left",
    breaks: "to a caller that gets at least a third of min(ttl, claimMs) (6)",
    edits: [
      edit(
        "acquire.ts",
        " && leftOf(hold.validity, clock) >= needed;",
        " && leftOf(hold.validity, clock) >= 0 * needed;",
      ),
    ],
    killers: [byRules("hold-runs", "a lease with less than a third of its TTL left is passed on")],
  },
  {
    name: "handed-over-to-who-does-not-renew",
    breaks: "to a caller that renews (6)",
    edits: [
      edit("acquire.ts", "return renew && hold.isOurs", "return (renew || hold.isOurs) && hold.isOurs"),
    ],
    killers: [byRules("hold-runs", "a caller that does not renew has a whole TTL")],
  },
  {
    name: "signal-late",
    breaks: "a lease is over when our clock says so: its signal aborts before the validity ends (3)",
    edits: [
      edit(
        "watchdog.ts",
        "    const endsAt = Math.min(this.#endOf(target), target.endsAt);",
        "    const endsAt = Math.min(this.#endOf(target) + 50, target.endsAt);",
      ),
    ],
    killers: [bySim(1, 60), byRules("watchdog", "unknown until the end: the lease is lost at its deadline")],
  },
  {
    name: "loss-needs-a-timer",
    breaks: "the event loop blocked past the TTL: whoever asks compares clocks",
    edits: [
      edit(
        "hold.ts",
        "    if (this.#isLive) {\n      if (leftOf",
        '    if (this.#isLive && this.#state === "leaked") {\n      if (leftOf',
      ),
    ],
    killers: [byRules("hold-loss", "with the event loop blocked past the TTL throwIfLost throws at once")],
  },
  {
    name: "timer-of-an-ended-lease-runs-on",
    breaks: "timer not cleared: nothing is left behind by a lease that ended",
    edits: [
      edit(
        "watchdog.ts",
        "    watch.isOver = true;\n    this.#queue.cancel(watch);\n",
        "    watch.isOver = true;\n",
      ),
    ],
    killers: [byRules("watchdog")],
  },
  {
    name: "timer-of-an-answered-call-runs-on",
    breaks: "timer not cleared: nothing is left behind by a call that was answered (7)",
    edits: [redis("batch", "    this.#clock.clearTimer(call.timer);\n", "")],
    killers: [byRules("drivers/redis/batch", "after an answer no timer is left")],
  },
  {
    name: "one-failed-renewal-loses-the-lease",
    breaks: "one transient error at renewal loses nothing: unknown is not lost (4.8)",
    edits: [
      edit(
        "watchdog.ts",
        "        watch.lastError = extension.error;\n        return;",
        '        watch.lastError = extension.error;\n        this.#end(watch, "engine-unreachable");\n        return;',
      ),
    ],
    killers: [byRules("watchdog", "unknown: renewal is tried again with growing backoff")],
  },
  {
    name: "renewal-that-hangs-is-waited-for",
    breaks: "each call with its own small timeout (4.2): a renewal that hangs is tried again",
    edits: [
      edit(
        "watchdog.ts",
        "    watch.renewAt = now + jittered(this.#random, backoffMs / 1.5, 0.5);\n",
        "    watch.renewAt = now + target.ttlMs + 0 * jittered(this.#random, backoffMs / 1.5, 0.5);\n",
      ),
    ],
    killers: [byRules("watchdog", "a renewal that hangs is tried again")],
  },
  {
    name: "a-claim-is-renewed-late",
    breaks: "the grantee sends extend(ttl) at once (3)",
    edits: [
      edit(
        "watchdog.ts",
        "return target.isClaim ? 0 : this.#endOf(target) - (target.ttlMs * 2) / 3;",
        "return this.#endOf(target) - (Math.min(target.ttlMs, leftOf(target.validity, this.#clock)) * 2) / 3;",
      ),
    ],
    killers: [bySim(1, 60), byRules("watchdog", "a claim is renewed as soon as its work is seen to go on")],
  },
  {
    name: "sleep-is-not-noticed",
    breaks:
      "elapsed time is the larger of the monotonic and the wall clock's (3): timers stand still while the machine sleeps",
    edits: [
      edit(
        "watchdog.ts",
        "const jumped = this.#pulse.read(this.#clock) > suspendedMs;",
        "const jumped = this.#pulse.read(this.#clock) > suspendedMs * 1e9;",
      ),
    ],
    killers: [byRules("watchdog", "after a sleep longer than its validity a lease is lost within a second")],
  },
  {
    name: "lost-lease-is-left-at-the-engine",
    breaks: "release is re-sent until the TTL has passed (3): also of a lease that was lost for us alone",
    edits: [
      edit(
        "hold.ts",
        "      this.#keeper.driver.release(this.key, this.grant.token, engineEnd(this.validity)).catch(() => false);\n",
        "      void engineEnd(this.validity);\n",
      ),
    ],
    killers: [byRules("hold", "a lost lease is taken back at the engine all the same")],
  },
  {
    name: "transferred-lease-is-kept-here",
    breaks: "handed over only a lease that was never transferred (6)",
    edits: [
      edit(
        "hold.ts",
        '    this.#end("transferred", "transferred");\n    this.#keeper.ended(this);\n',
        '    this.#state = "transferred";\n',
      ),
    ],
    killers: [byRules("hold", "transferred lease")],
  },
  {
    name: "extension-counts-without-an-answer",
    breaks: "unknown is neither held past validUntil nor lost before it (4.8)",
    edits: [
      edit(
        "hold.ts",
        '    if (extension.outcome === "lost") {\n      this.#keeper.lose(',
        '    if (extension.outcome === "unknown") {\n      const { clock } = this.#keeper;\n      prolong(validity, { until: clock.now() + ttlMs, untilWall: clock.wall() + ttlMs });\n    } else if (extension.outcome === "lost") {\n      this.#keeper.lose(',
      ),
    ],
    killers: [
      byRules("hold", "an extension that is not answered rejects and loses nothing"),
      byRules("hold-loss", "a lease whose renewals are not answered"),
    ],
  },
  {
    name: "operations-share-an-answer",
    breaks: "operations issued in one turn travel as one script call, each with its own answer (7)",
    edits: [
      redis(
        "batch",
        "operation.answered({ value: values[index],",
        "operation.answered({ value: values[0 * index],",
      ),
    ],
    killers: [bySim(1, 60), byRules("drivers/redis/batch", "operations of one turn travel as one call")],
  },
  {
    name: "a-call-without-its-time-limit",
    breaks: "each with its own small timeout (4.2)",
    edits: [
      redis(
        "batch",
        "      this.#isSilent ||= this.#isVoter;\n      call.fail(timeoutError(this.#timeoutMs));",
        "      this.#isSilent ||= this.#isVoter;\n      void timeoutError(this.#timeoutMs);",
      ),
    ],
    killers: [byRules("drivers/redis/batch", "no answer in time is told as a failure")],
  },
  {
    name: "passing-on-without-an-answer-is-forgotten",
    breaks: "release is re-sent until the TTL has passed (3): also of what was to be passed on",
    edits: [
      redis(
        "giving-up",
        "          release().then(() => {\n            resolve(true);\n          }, reject);",
        "          void [release, reject];\n          resolve(true);",
      ),
    ],
    killers: [
      byRules(
        "drivers/redis/late-requests",
        "what could not be passed on is released also where who comes next gives up",
      ),
    ],
  },
  {
    name: "silent-node-keeps-what-was-passed-on",
    breaks: "release and cancel go to all nodes (4.7): also of what was passed on",
    edits: [
      redis(
        "quorum/request",
        "if (this.#given && !hasPassedOn && this.#given.hold.mayBeOn(voter)) {",
        'if (this.#given && !hasPassedOn && this.#given.hold.isOver && this.#given.hold.token === "") {',
      ),
    ],
    killers: [
      byRules("drivers/redis/quorum/leftovers", "a grant that was passed on is given back on a silent node"),
    ],
  },
  {
    name: "silent-node-is-waited-for-each-time",
    breaks:
      "each with its own small timeout (4.2): requests do not pile up before a node that does not answer",
    edits: [
      redis(
        "batch",
        "      this.#isSilent ||= this.#isVoter;\n",
        "      this.#isSilent ||= this.#isVoter && this.#calls < 0;\n",
      ),
    ],
    killers: [byServer("faults/redlock-minority", "2 000 acquisitions do not pile up before it")],
  },
  {
    name: "grant-that-races-an-abort-is-kept",
    breaks: "any grant for a token that no longer waits here is answered by release at once (3)",
    isMarked: true,
    edits: [
      edit("contention.ts", "        this.giveUp(acquired.grant);\n", ""),
      edit("acquire.ts", "      this.#contention.giveUp(acquired.grant);\n", ""),
    ],
    killers: [
      byRules("hold-waiting", "a caller that aborts while its grant is under way leaves the lock free"),
    ],
  },
  {
    name: "loss-that-was-missed-is-not-asked-for",
    breaks: "messages may be lost (3): a holder asks when they are heard again",
    edits: [redis("one-server", "        listener.mayHaveMissed();\n", "        void listener;\n")],
    killers: [byServer("faults/loss", "is told lost at once when messages are heard again")],
  },
  {
    name: "who-shares-a-released-grant-is-not-told",
    breaks: "a repeat through another instance is the same acquire (1): and so is its end",
    edits: [
      edit(
        "hold.ts",
        "if (this.#options.mayBeShared === true) {",
        'if (this.#options.mayBeShared === true && this.key === "") {',
      ),
    ],
    killers: [byRules("hold-shared")],
  },
];
