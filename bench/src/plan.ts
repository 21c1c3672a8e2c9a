import type { ResolvedOptions } from "./options.ts";
import type { Entrant } from "./roster.ts";
import type { Suite } from "./suite.ts";
import { hot } from "./suites/hot.ts";
import { renewals, type RenewalSize } from "./suites/renewals.ts";
import { takeover, type TakeoverSize } from "./suites/takeover.ts";
import { uncontended } from "./suites/uncontended.ts";
import type { Timing } from "./window.ts";

interface Sizes {
  readonly uncontended: Timing;
  /** Longer: the slowest pollers of the peers ask four times a second. */
  readonly hot: Timing;
  readonly renewals: RenewalSize;
  readonly takeover: TakeoverSize;
}

/** Three rounds of all suites take about nine minutes. */
const thorough: Sizes = {
  uncontended: { warmUpMs: 250, measureMs: 1_000 },
  hot: { warmUpMs: 800, measureMs: 2_000 },
  renewals: { leases: 10_000, ttlMs: 4_000 },
  takeover: { ttlMs: 2_000, repetitions: 5 },
};

/** One round of all suites takes about a minute. */
const quickly: Sizes = {
  uncontended: { warmUpMs: 100, measureMs: 250 },
  hot: { warmUpMs: 250, measureMs: 250 },
  renewals: { leases: 1_000, ttlMs: 1_500 },
  takeover: { ttlMs: 1_000, repetitions: 3 },
};

/** The suites that were asked for. */
export function plan({ suites, peers, quick, measureMs }: ResolvedOptions): readonly Suite[] {
  const sizes = quick ? quickly : thorough;
  const timed = (timing: Timing): Timing => ({ ...timing, measureMs: measureMs ?? timing.measureMs });
  const entrants: readonly Entrant[] = ["raw", ...peers, "holdfast"];
  const all: readonly Suite[] = [
    uncontended(entrants, timed(sizes.uncontended)),
    hot([...entrants, "holdfast-strict"], timed(sizes.hot)),
    renewals(entrants, sizes.renewals),
    // Without raw, whose wait is nothing but its poll.
    takeover([...peers, "holdfast", "holdfast-strict"], sizes.takeover),
  ];
  return all.filter(({ name }) => suites.includes(name));
}
