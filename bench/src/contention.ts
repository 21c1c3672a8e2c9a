import { fewestGrants, grantsIn, grantsPerSecond, shares } from "./statistics.ts";
import { waitsOf } from "./waits.ts";
import type { Window } from "./window.ts";

/** How a key that everybody wants was shared, by the ids of the metrics. */
export function contentionOf({ measurements, serverCommands }: Window): Record<string, number> {
  return {
    rate: grantsPerSecond(measurements),
    ...waitsOf(measurements),
    ...shares(measurements),
    fewest: fewestGrants(measurements),
    commands: serverCommands / grantsIn(measurements),
  };
}

/** What each of so many tasks would get if all got the same, in percent. */
export function evenShare(tasks: number): string {
  return `${(100 / tasks).toFixed(2)} %`;
}
