import { clientCpuMs } from "./statistics.ts";
import type { Metric } from "../suites/suite.ts";
import type { Window } from "./window.ts";

export const cpuMetrics: readonly Metric[] = [
  { id: "commands", label: "commands/s", digits: 0, best: "least" },
  { id: "clientCpu", label: "client CPU %", digits: 1, best: "least" },
  { id: "serverCpu", label: "server CPU %", digits: 1 },
];

/** The load on clients and servers, by the ids of the metrics, regardless of the number of grants. */
export function cpuFigures({
  measurements,
  serverCommands,
  serverCpuMs,
  elapsedMs,
}: Window): Record<string, number> {
  return {
    commands: (serverCommands / elapsedMs) * 1000,
    clientCpu: (clientCpuMs(measurements) / elapsedMs) * 100,
    serverCpu: (serverCpuMs / elapsedMs) * 100,
  };
}
