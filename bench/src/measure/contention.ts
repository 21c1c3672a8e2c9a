import { fewestGrants, grantsIn, grantsPerSecond, grantShares } from "./statistics.ts";
import type { Metric, Panel } from "../suites/suite.ts";
import { waitsOf } from "./waits.ts";
import type { Window } from "./window.ts";

export const contentionMetrics: readonly Metric[] = [
  { id: "rate", label: "acquisitions/s", digits: 0, best: "most" },
  { id: "p50", label: "wait p50 ms", digits: 2 },
  { id: "p90", label: "wait p90 ms", digits: 1 },
  { id: "p99", label: "wait p99 ms", digits: 1, best: "least" },
  { id: "max", label: "wait max ms", digits: 0, against: "p99" },
  { id: "p50ByTime", label: "p50 by time ms", digits: 1, best: "least" },
  { id: "smallest", label: "smallest share %", digits: 2 },
  { id: "largest", label: "largest share %", digits: 2 },
  { id: "fewest", label: "fewest grants", digits: 0 },
  { id: "commands", label: "commands/acquisition", digits: 1 },
];

export const contentionPanels: readonly Panel[] = [
  { form: "bars", metric: "rate" },
  { form: "spans", scale: "log", label: "wait p50, p90, p99, max ms", metrics: ["p50", "p90", "p99", "max"] },
  { form: "spans", scale: "linear", label: "smallest to largest share %", metrics: ["smallest", "largest"] },
];

/** The figures of a contended key, by the ids of the metrics. */
export function contentionOf({ measurements, serverCommands }: Window): Record<string, number> {
  return {
    rate: grantsPerSecond(measurements),
    ...waitsOf(measurements),
    ...grantShares(measurements),
    fewest: fewestGrants(measurements),
    commands: serverCommands / grantsIn(measurements),
  };
}

/** The share of each task, in percent, if all tasks got the same number of grants. */
export function evenShare(tasks: number): string {
  return `${(100 / tasks).toFixed(2)} %`;
}
