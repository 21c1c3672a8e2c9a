import { byRules, edit, type Mutant } from "../mutant.ts";

const renewer = "watchdog-thread/thread-renewer";

export const watchdogThread: readonly Mutant[] = [
  {
    name: "thread-renews-for-a-process-that-hangs",
    brokenRule: "watchdog thread: no renewal after the event loop was blocked for maxBlockedMs",
    edits: [
      edit(
        `${renewer}.ts`,
        "this.#host.blockedMs() <= maxBlockedMs",
        "this.#host.blockedMs() <= Infinity * maxBlockedMs",
      ),
    ],
    killers: [byRules(renewer, "stops for a thread that has been blocked for too long")],
  },
  {
    name: "thread-renews-beyond-the-end-of-the-lease",
    brokenRule: "watchdog thread: no renewal after maxHoldMs",
    edits: [edit(`${renewer}.ts`, "if (!isEnding && ", "if (")],
    killers: [byRules(renewer, "stops for a thread that has been blocked for too long")],
  },
  {
    name: "thread-renews-an-expired-lease",
    brokenRule: "watchdog thread: no renewal after the end of the validity",
    edits: [edit(`${renewer}.ts`, "if (!times || remainingMs <= 0) {", "if (!times) {")],
    killers: [byRules(renewer, "repeats a failed renewal until the end of the validity")],
  },
  {
    name: "thread-reports-losses-of-an-engine-without-its-leases",
    brokenRule: "watchdog thread: a loss is reported only if the engine has had a lease of the process",
    edits: [edit(`${renewer}.ts`, '"lost" && this.#isConfirmed', '"lost" && watched.isRenewing === false')],
    killers: [byRules(renewer, "reports no loss of an engine that has had no lease of the process")],
  },
  {
    name: "slot-shows-the-times-of-the-next-lease",
    brokenRule: "watchdog thread: an old view of a slot does not change the next lease there",
    edits: [
      edit(
        "watchdog-thread/lease-slot.ts",
        "if ((present & ~timeMask) !== this.#lease || isEnded) {",
        "if (isEnded) {",
      ),
    ],
    killers: [byRules(renewer, "shows and changes nothing of the next lease")],
  },
];
