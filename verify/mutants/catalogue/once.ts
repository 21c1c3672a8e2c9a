import { byRules, bySim, edit, type Mutant } from "../mutant.ts";

export const once: readonly Mutant[] = [
  {
    name: "once-frees-the-key-after-the-work",
    brokenRule: "once: the key stays held for keepMs after the grant, also if the work is short",
    edits: [
      edit(
        "kinds/once.ts",
        "    if (remainingMs <= 0) {",
        "    if (remainingMs <= 0 || lease.remainingMs() > 0) {",
      ),
    ],
    killers: [byRules("kinds/once", "work runs once in the period")],
  },
  {
    name: "once-keeps-the-key-only-while-the-process-lives",
    brokenRule: "once: the key stays held when the process ends",
    edits: [
      edit(
        "kinds/once.ts",
        "      if (lease.remainingMs() < remainingMs) {",
        "      if (lease.remainingMs() <= 0) {",
      ),
    ],
    killers: [byRules("kinds/once", "the end of the process")],
  },
  {
    name: "once-crash-frees-a-key-that-it-keeps",
    brokenRule: 'once: after a crash with ifCrashed "keep" the key stays held for keepMs',
    edits: [edit("kinds/once.ts", '"keep" ? kept : undefined', '"keep" ? ttlMs : undefined')],
    killers: [byRules("kinds/once", "after a crash with ifCrashed keep")],
  },
  {
    name: "once-adds-the-kept-time-with-each-renewal",
    brokenRule: 'once: with ifCrashed "keep" the key is free keepMs after the grant, or up to ttlMs later',
    edits: [
      edit("kinds/once.ts", "...acquire, ttlMs, firstTtlMs,", "...acquire, ttlMs: firstTtlMs ?? ttlMs,"),
    ],
    killers: [byRules("kinds/once", "of renewed work ifCrashed keep")],
  },
  {
    name: "once-hides-a-loss-that-the-engine-reports",
    brokenRule: "once: a loss before the end of the work is reported, also without a notification",
    edits: [edit("kinds/once.ts", "        return false;", "        return true;")],
    killers: [byRules("kinds/once", "a loss that only the engine knows")],
  },
  {
    name: "once-keeps-the-key-of-failed-work",
    brokenRule: "once: work that throws frees the key at once",
    edits: [
      edit(
        "kinds/lockable.ts",
        "      await lease.release().catch(() => false);\n      throw",
        "      lease.orphan();\n      throw",
      ),
    ],
    killers: [byRules("kinds/once", "work that throws")],
  },
  {
    name: "min-hold-is-ignored",
    brokenRule: "minHoldMs: an early release keeps the key until the shortest hold has passed",
    edits: [edit("lease/lease-state.ts", "    if (keptMs > 0) {", "    if (keptMs > Infinity) {")],
    killers: [
      bySim(1, 60),
      byRules("drivers/memory/driver", "minHoldMs keeps the key after an early release"),
    ],
  },
  {
    name: "min-hold-is-left-to-the-rest-of-the-ttl",
    brokenRule: "minHoldMs: the engine keeps the grant until the shortest hold has passed",
    edits: [edit("lease/lease-state.ts", "      isKept || extendGrant(", "      true || extendGrant(")],
    killers: [bySim(1, 60)],
  },
  {
    name: "min-hold-counts-from-the-release",
    brokenRule: "minHoldMs: a release ends the grant when the shortest hold has passed since the grant",
    edits: [
      edit(
        "lease/lease-state.ts",
        "    const keptMs = this.#heldUntil - this.#host.clock.now();",
        "    const keptMs = this.#options.minHoldMs ?? 0;",
      ),
    ],
    killers: [bySim(1, 400)],
  },
  {
    name: "min-hold-keeps-the-keys-of-a-failed-acquire",
    brokenRule: "minHoldMs: an acquire of several keys that fails releases its keys at once",
    edits: [
      edit(
        "kinds/multi-lock.ts",
        '{ ...options, minHoldMs: 0, ifLost: "abort" }',
        '{ ...options, ifLost: "abort" }',
      ),
    ],
    killers: [byRules("drivers/memory/driver", "minHoldMs does not delay a later release")],
  },
];
