import { clientCpuMs, grantsIn, grantsPerSecond } from "./statistics.ts";
import { waitsOf } from "./waits.ts";
import type { Window } from "./window.ts";

/** The cost of an uncontended lock, by the ids of the metrics. */
export function costOf({ measurements, serverCommands, serverCpuMs }: Window): Record<string, number> {
  const cycles = grantsIn(measurements);
  const { p50, p99 } = waitsOf(measurements);
  return {
    rate: grantsPerSecond(measurements),
    p50,
    p99,
    commands: serverCommands / cycles,
    cpu: (clientCpuMs(measurements) * 1000) / cycles,
    serverCpu: (serverCpuMs * 1000) / cycles,
  };
}
