import type { ResolvedOptions } from "./options.ts";
import { hasQuorum, semaphoresOf, withVariants, type Entrant } from "./roster.ts";
import type { Suite } from "./suite.ts";
import { commandLine } from "./suites/command-line.ts";
import { hot } from "./suites/hot.ts";
import { redlockHot, type RedlockHotSize } from "./suites/redlock-hot.ts";
import { redlockUncontended } from "./suites/redlock-uncontended.ts";
import { renewals, type RenewalSize } from "./suites/renewals.ts";
import { readWrite, semaphore } from "./suites/shared.ts";
import { takeover, type TakeoverSize } from "./suites/takeover.ts";
import { uncontended } from "./suites/uncontended.ts";
import type { Timing } from "./window.ts";

interface Sizes {
  readonly rounds: number;
  readonly uncontended: Timing;
  /** Longer: the slowest pollers of the peers ask four times a second. */
  readonly hot: Timing;
  readonly renewals: RenewalSize;
  readonly takeover: TakeoverSize;
  readonly commandLineStarts: number;
  readonly redlockRounds: number;
  readonly redlockUncontended: Timing;
  readonly redlockHot: RedlockHotSize;
}

/** All suites take about thirty minutes, those on one server thirteen of them. */
const thorough: Sizes = {
  rounds: 3,
  uncontended: { warmUpMs: 250, measureMs: 1_000 },
  hot: { warmUpMs: 800, measureMs: 2_000 },
  renewals: { leases: 10_000, ttlMs: 4_000 },
  takeover: { ttlMs: 2_000, repetitions: 5 },
  commandLineStarts: 20,
  redlockRounds: 5,
  redlockUncontended: { warmUpMs: 250, measureMs: 1_000 },
  // Longest: for a hundred grants to each of the tasks, and for waits of several seconds to be seen.
  redlockHot: { nodeCounts: [5, 3], timing: { warmUpMs: 1_500, measureMs: 10_000 } },
};

/** One round of all suites takes about two minutes. */
const quickly: Sizes = {
  rounds: 1,
  uncontended: { warmUpMs: 100, measureMs: 250 },
  hot: { warmUpMs: 250, measureMs: 250 },
  renewals: { leases: 1_000, ttlMs: 1_500 },
  takeover: { ttlMs: 1_000, repetitions: 3 },
  commandLineStarts: 5,
  redlockRounds: 1,
  redlockUncontended: { warmUpMs: 100, measureMs: 250 },
  redlockHot: { nodeCounts: [5], timing: { warmUpMs: 500, measureMs: 1_000 } },
};

/** The suites that were asked for. */
export function plan({ suites, peers, quick, measureMs, ...asked }: ResolvedOptions): readonly Suite[] {
  const sizes = quick ? quickly : thorough;
  const timed = (timing: Timing): Timing => ({ ...timing, measureMs: measureMs ?? timing.measureMs });
  const rounds = asked.rounds ?? sizes.rounds;
  const redlockRounds = asked.rounds ?? sizes.redlockRounds;
  const { nodeCounts, timing } = sizes.redlockHot;
  const entrants: readonly Entrant[] = ["raw", ...peers, "holdfast"];
  const voting = entrants.filter(hasQuorum);
  const all: readonly Suite[] = [
    uncontended(entrants, timed(sizes.uncontended), rounds),
    hot([...entrants, "holdfast-strict"], timed(sizes.hot), rounds),
    renewals(entrants, sizes.renewals, rounds),
    // Without raw, whose wait is nothing but its poll.
    takeover([...peers, "holdfast", "holdfast-strict"], sizes.takeover, rounds),
    readWrite([...entrants, "holdfast-read-write"], timed(sizes.hot), rounds),
    semaphore(semaphoresOf(entrants), timed(sizes.hot), rounds),
    commandLine(["holdfast"], sizes.commandLineStarts, rounds),
    redlockUncontended(voting, timed(sizes.redlockUncontended), redlockRounds),
    redlockHot(withVariants(voting), { nodeCounts, timing: timed(timing) }, redlockRounds),
  ];
  return all.filter(({ name }) => suites.includes(name));
}
