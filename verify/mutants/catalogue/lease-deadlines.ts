import { byRules, byServer, bySim, edit, redis, type Mutant } from "../mutant.ts";

/** Mutants of the moment at which a lease is declared lost. */
export const leaseDeadlines: readonly Mutant[] = [
  {
    name: "signal-late",
    brokenRule: "the signal of a lease aborts before the validity ends by the client's clock",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    const endsAt = Math.min(this.#lossDeadline(target), target.endsAt);",
        "    const endsAt = Math.min(this.#lossDeadline(target) + 50, target.endsAt);",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("lease/watchdog", "unknown until the end: the lease is lost at its deadline"),
    ],
  },
  {
    name: "deadline-has-no-lead",
    brokenRule: "the signal of a lease aborts before the validity ends, although timers run late",
    edits: [
      edit(
        "lease/watchdog.ts",
        "return this.#expiryOf(target) - this.#lateness.leadMs(target.ttlMs);",
        "return this.#expiryOf(target) - 0 * this.#lateness.leadMs(target.ttlMs);",
      ),
    ],
    killers: [
      byServer("integration/single/loss-before-end", "each signal aborts before the validity ends"),
      byRules("lease/watchdog", "unknown until the end: the lease is lost at its deadline"),
    ],
  },
  {
    name: "late-timers-are-not-noted",
    brokenRule: "the signal of a lease aborts earlier if timers of the process run late",
    edits: [edit("lease/watchdog.ts", "      this.#lateness.record(item.dueAt);\n", "")],
    killers: [
      byRules(
        "lease/watchdog-deadline",
        "after late timers the loss is declared earlier by the worst lateness and 2 ms",
      ),
    ],
  },
  {
    name: "overdue-renewal-counts-as-a-late-timer",
    brokenRule:
      "the lead of a deadline covers late timers, and not an item that was overdue when it was scheduled",
    edits: [
      edit(
        "lease/watchdog.ts",
        "this.#queue.schedule(watched, Math.max(dueAt, this.#clock.now()));",
        "this.#queue.schedule(watched, dueAt);",
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog-deadline",
        "rescheduling a lease with an overdue renewal records no late timer",
      ),
    ],
  },
  {
    name: "late-timer-is-forgotten-with-its-window",
    brokenRule: "the lead of a deadline is the largest lateness of this window and the one before",
    edits: [
      edit("runtime/timer-lateness.ts", "Math.max(this.#maxMs, this.#previousMaxMs)", "this.#maxMs"),
      edit("runtime/timer-lateness.ts", "? this.#maxMs : 0;", "? this.#previousMaxMs : 0;"),
    ],
    killers: [
      byRules(
        "runtime/timer-lateness",
        "a late timer counts for the window of 30 s in which it ran, and for the next",
      ),
    ],
  },
  {
    name: "late-timer-is-never-forgotten",
    brokenRule: "a late timer does not shorten leases forever",
    edits: [edit("runtime/timer-lateness.ts", "      this.#maxMs = 0;\n", "")],
    killers: [
      byRules(
        "runtime/timer-lateness",
        "a late timer counts for the window of 30 s in which it ran, and for the next",
      ),
    ],
  },
  {
    name: "lead-has-no-bound",
    brokenRule: "a blocked event loop shortens a lease by at most a twentieth of its TTL",
    edits: [edit("runtime/timer-lateness.ts", ", ttlMs / 20, maxLeadMs);", ", ttlMs, maxLeadMs * 1e6);")],
    killers: [byRules("runtime/timer-lateness", "the lead is at most a twentieth of the TTL and 50 ms")],
  },
  {
    name: "early-loss-looks-like-a-suspension",
    brokenRule: "suspended means that the lease expired by the wall clock, and not by the monotonic clock",
    edits: [
      edit(
        "validity.ts",
        "return validity.until - clock.now() - remainingValidityMs(validity, clock) > clockGrainMs;",
        "return validity.until - clock.now() > clockGrainMs;",
      ),
    ],
    killers: [byRules("lease/watchdog-deadline", "a loss that is declared early is no suspension")],
  },
  {
    name: "signal-without-a-strong-reference",
    brokenRule: "a caller that waits for the signal alone learns of the loss",
    edits: [
      edit(
        "lease/lease-handle.ts",
        "      this.#state.onLoss((loss) => controller.abort(loss));",
        "      const weak = new WeakRef(controller);\n      this.#state.onLoss((loss) => weak.deref()?.abort(loss));",
      ),
    ],
    killers: [byRules("lease/lease-leaks", "a lease renews for a caller that waits for the signal alone")],
  },
  {
    name: "signal-of-several-keys-without-a-strong-reference",
    brokenRule: "a caller that waits for the signal of a lease on several keys learns of the loss",
    edits: [edit("kinds/multi-lease.ts", "lease.onLoss((loss) => this.#memberLost(loss)); // a", "// a")],
    killers: [
      byRules(
        "lease/lease-leaks",
        "a lease of several keys renews for a caller that waits for the signal alone",
      ),
    ],
  },
  {
    name: "loss-needs-a-timer",
    brokenRule: "after the event loop was blocked past the TTL, a check of the lease compares clocks",
    edits: [
      edit(
        "lease/lease-state.ts",
        "    if (this.#isLive) {\n      if (remainingValidityMs",
        '    if (this.#isLive && this.#state === "leaked") {\n      if (remainingValidityMs',
      ),
    ],
    killers: [
      byRules(
        "lease/lease-loss",
        "after an event loop blocked past the TTL throwIfLost throws before any timer runs",
      ),
    ],
  },
  {
    name: "loss-waits-for-a-timer-after-a-reply",
    brokenRule:
      "a loss is reported on time: an extension whose reply arrives after its own end has no effect",
    edits: [
      edit(
        "lease/watchdog.ts",
        "    if (this.#lossDeadline(target) <= this.#clock.now()) {\n      this.#end(watched, this.#lossReason(watched)); //",
        "    if (watched.isEnded) {\n      this.#end(watched, this.#lossReason(watched)); //",
      ),
    ],
    killers: [byRules("lease/watchdog", "a reply after the end declares the loss at once, before any timer")],
  },
  {
    name: "sleep-is-not-noticed",
    brokenRule:
      "elapsed time is the larger of the two clocks' measurements, because timers stop while the machine sleeps",
    edits: [
      edit(
        "lease/watchdog.ts",
        "const jumped = this.#clockJumps.readJumpMs(this.#clock) > suspendedMs;",
        "const jumped = this.#clockJumps.readJumpMs(this.#clock) > suspendedMs * 1e9;",
      ),
    ],
    killers: [
      byRules(
        "lease/watchdog-suspension",
        "after a sleep longer than its validity a lease is lost within a second",
      ),
    ],
  },
  {
    name: "confirmation-is-measured-by-one-clock",
    brokenRule: "a lease expires as soon as either clock says so",
    edits: [
      edit(
        "validity.ts",
        "if (remainingValidityMs(confirmed, clock) > remainingValidityMs(validity, clock)) {",
        "if (remainingValidityMs(confirmed, clock) > 0 && confirmed.until > validity.until) {",
      ),
    ],
    killers: [
      byRules(
        "validity",
        "a confirmation with more remaining time on the stricter clock counts, even if its end is earlier on the other",
      ),
    ],
  },
  {
    name: "missed-loss-is-not-checked",
    brokenRule: "notifications may be lost, so a holder checks its lease after each subscription",
    edits: [
      redis(
        "single/request-registry",
        "        listener.notificationsInterrupted();\n",
        "        void listener;\n",
      ),
    ],
    killers: [byServer("integration/single/loss", "is reported lost at once when notifications")],
  },
];
