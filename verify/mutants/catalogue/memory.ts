import { byRules, bySim, edit, type Mutant } from "../mutant.ts";

/** Mutants of the memory engine, which has the same guarantees. */
export const memory: readonly Mutant[] = [
  {
    name: "memory-expiry-needs-a-timer",
    brokenRule: "a holder whose TTL has passed has expired, even before a timer runs",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "({ dueAt }) => dueAt <= this.#clock.now()",
        "({ dueAt, slot }) => slot === -1 && dueAt <= this.#clock.now()",
      ),
    ],
    killers: [byRules("drivers/memory/expiry", "a holder whose TTL has passed is expired")],
  },
  {
    name: "memory-counter-without-plus-one",
    brokenRule: "n = max(last + 1, time in µs)",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "now > this.#fences ? now : this.#fences + 1n;",
        "now > this.#fences ? now : this.#fences;",
      ),
    ],
    killers: [
      bySim(1, 60),
      byRules("drivers/memory/fencing", "numbers are the wall clock in microseconds, or the next ones"),
    ],
  },
  {
    name: "memory-release-without-comparing",
    brokenRule: "a release with another token is answered with not-held",
    edits: [
      edit(
        "drivers/memory/lock.ts",
        "return this.#entries.get(token);",
        "return this.#entries.get(token) ?? Array.from(this.#entries.values())[0];",
      ),
    ],
    killers: [byRules("drivers/memory/queue", "requeue of a lost grant takes no other holder's")],
  },
  {
    name: "memory-waiter-past-its-deadline-is-granted",
    brokenRule: "only a waiter within its deadline is granted",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "const isAlive = first.dueAt > this.#clock.now();",
        "const isAlive = first.dueAt > 0 * this.#clock.now();",
      ),
    ],
    killers: [byRules("drivers/memory/expiry", "a waiter past its deadline is")],
  },
  {
    name: "memory-extend-shortens",
    brokenRule: "extension raises the TTL and never shortens it",
    edits: [
      edit(
        "drivers/memory/lock-table.ts",
        "if (sent.now + ttlMs > entry.dueAt) {",
        "if (sent.now + ttlMs > 0) {",
      ),
    ],
    killers: [byRules("drivers/memory/expiry", "extend raises the TTL, never shortens it")],
  },
  {
    name: "memory-grants-by-arrival",
    brokenRule: "waiters are granted in the order of their tickets, and not of their requests' arrival",
    edits: [
      edit(
        "drivers/memory/lock.ts",
        "return one.ticket < other.ticket || (one.ticket === other.ticket && one.serial < other.serial);",
        "return one.serial < other.serial;",
      ),
    ],
    killers: [byRules("drivers/memory/queue", "waiters are served by ticket")],
  },
];
