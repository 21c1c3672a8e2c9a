import { byRules, byServer, edit, type Mutant } from "../mutant.ts";

/** Mutants of leases, their end and their renewal. */
export const leases: readonly Mutant[] = [
  {
    name: "ended-work-without-a-value-looks-aborted",
    brokenRule: "the error of a lost lease says whether the work ended, also if the work has no value",
    edits: [
      edit("errors.ts", 'this.workEnded = "result" in more;', "this.workEnded = more.result !== undefined;"),
    ],
    killers: [byRules("drivers/memory/driver", "a callback without a value ended")],
  },
  {
    name: "confirmed-claim-is-confirmed-at-each-hand-over",
    brokenRule: "a hand-over in memory of a confirmed claim sends nothing to the engine",
    edits: [edit("local/acquisition.ts", ", isClaim: previous.isClaim }", " }")],
    killers: [byRules("lease/lease-waiting", "a hand-over of a confirmed claim sends no extension")],
  },
  {
    name: "timer-of-an-ended-lease-remains",
    brokenRule: "a lease that ended has no timer",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    watched.isEnded = true;\n    this.#queue.cancel(watched);\n",
        "    watched.isEnded = true;\n",
      ),
    ],
    killers: [byRules("lease/watchdog")],
  },
  {
    name: "end-of-an-orphan-is-not-reported",
    brokenRule: "the end of a lease that is left to expire is reported, even after close",
    edits: [
      edit(
        "lease/lease-state.ts",
        '      this.#state = "orphaned";\n      this.#host.watchdog.reschedule(this.#watched);\n',
        '      this.#state = "orphaned";\n      this.#host.watchdog.unwatch(this.#watched);\n',
      ),
    ],
    killers: [
      byRules("lease/lease-state", "an orphan also learns of its end after close, and then no timer is left"),
    ],
  },
  {
    name: "adopted-after-close",
    brokenRule: "after close no lease is watched, and no timer remains",
    edits: [
      edit(
        "create-locks.ts",
        "fencingToken, options.ttlMs);\n    this.#coordinator.assertOpen(key);\n",
        "fencingToken, options.ttlMs);\n",
      ),
    ],
    killers: [
      byRules(
        "lease/lease-state",
        "an adoption during close is refused, changes no holder, and leaves no timer",
      ),
    ],
  },
  {
    name: "adoption-trusts-the-stored-ttl",
    brokenRule:
      "a grant whose stored TTL was removed is extended by its adoption, because nothing else would give it a TTL",
    edits: [
      edit(
        "create-locks.ts",
        'if (found.outcome === "valid" &&',
        'if (ttlMs < 0 && found.outcome === "valid" &&',
      ),
    ],
    killers: [byServer("integration/persistent-keys", "from the process that adopts the lease")],
  },
  {
    name: "late-adoption-is-renewed-as-a-new-lease",
    brokenRule: "a renewal is sent before the lease expires",
    edits: [
      edit(
        "lease/watchdog.ts",
        "Math.min(minRenewalDelayMs, remainingMs / 20)",
        "Math.min(minRenewalDelayMs, remainingMs / 20 + target.ttlMs / 20)",
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog",
        "a lease with less than 5 ms, for example a late adoption, is renewed before it ends",
      ),
    ],
  },
  {
    name: "one-failed-renewal-loses-the-lease",
    brokenRule:
      "one transient error at renewal does not lose the lease, because an unknown outcome is not a loss",
    edits: [
      edit(
        "lease/watchdog.ts",
        "        watched.lastError = extension.error;\n",
        '        watched.lastError = extension.error;\n        this.#end(watched, "engine-unreachable");\n',
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog",
        "unknown: the renewal is retried with growing backoff, and one success restores the schedule",
      ),
    ],
  },
  {
    name: "renewal-without-a-reply-is-repeated-often",
    brokenRule:
      "a renewal without a reply is repeated after a third of the TTL, so that a slow server gets no extra load",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    watched.renewAt = now + target.ttlMs / 3;\n",
        "    watched.renewAt = now + target.ttlMs / 30;\n",
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog",
        "an unanswered renewal is repeated only when another third of the TTL has passed",
      ),
    ],
  },
  {
    name: "all-due-timers-run-before-any-reply-is-read",
    brokenRule: "a late process with many leases reads replies between its renewals",
    edits: [edit("runtime/timer-queue.ts", "const mostAtOnce = 256;", "const mostAtOnce = 1_000_000;")],
    killers: [byRules("runtime/timer-queue", "at most 256 items are woken")],
  },
  {
    name: "hanging-renewal-is-not-repeated",
    brokenRule: "each call has a short timeout, so a renewal that hangs is repeated",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    watched.renewAt = now + target.ttlMs / 3;\n",
        "    watched.renewAt = now + target.ttlMs;\n",
      ),
    ],
    killers: [byRules("lease/watchdog", "a hanging renewal is retried, and the first reply counts")],
  },
  {
    name: "a-claim-is-renewed-late",
    brokenRule: "the grantee sends extend(ttl) at once",
    edits: [
      edit(
        "lease/watchdog.ts",
        "return target.isClaim ? 0 : Math.min(target.reportAt, this.#expiryOf(target) - (target.ttlMs * 2) / 3);",
        "return this.#expiryOf(target) - (Math.min(target.ttlMs, remainingValidityMs(target.validity, this.#clock)) * 2) / 3;",
      ),
    ],
    killers: [byRules("lease/watchdog", "a claim is renewed as soon as its work has lasted for 5 ms")],
  },
  {
    name: "lost-lease-is-not-released",
    brokenRule:
      "release is repeated until the TTL has passed, also for a lease that only this client has lost",
    edits: [
      edit(
        "lease/engine-requests.ts",
        "    driver.release(key, token, engineExpiry(validity)).catch(() => false);\n",
        "    void [driver, key, token, engineExpiry(validity)];\n",
      ),
    ],
    killers: [
      byRules(
        "lease/lease-state",
        "the release of a lost lease still reaches the engine, which may still hold the grant",
      ),
    ],
  },
  {
    name: "extension-counts-without-a-reply",
    brokenRule: "after an unknown outcome a lease is not held past its validity, and not lost before",
    edits: [
      edit(
        "lease/engine-requests.ts",
        '  if (extension.outcome === "lost") {\n    host.markLost(',
        '  if (extension.outcome === "unknown") {\n    const { clock } = host;\n    extendValidity(validity, { until: clock.now() + ttlMs, untilWall: clock.wall() + ttlMs }, clock);\n  } else if (extension.outcome === "lost") {\n    host.markLost(',
      ),
    ],
    killers: [
      byRules(
        "lease/lease-state",
        "an unanswered extension rejects and loses nothing, and a refused extension is a loss",
      ),
      byRules(
        "lease/lease-loss",
        "a lease with unanswered renewals aborts its signal before its validity ends",
      ),
    ],
  },
];
