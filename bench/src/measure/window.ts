import { setTimeout as sleep } from "node:timers/promises";
import type { WorkerGroup } from "../run/workers.ts";
import type { Measurement } from "../run/protocol.ts";
import { readStats, type ServerStats } from "./server-stats.ts";
import { sum } from "./statistics.ts";
import type { EngineSite, Site } from "../suites/suite.ts";

export interface Timing {
  /** The load runs for this time before the measurement. */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

export function timingText({ warmUpMs, measureMs }: Timing): string {
  return `Every figure over ${measureMs / 1000} s after ${warmUpMs / 1000} s of warm-up`;
}

/** The work of a worker group and of the servers in the same period. */
export interface Window {
  readonly elapsedMs: number;
  readonly serverCommands: number;
  readonly serverCpuMs: number;
  readonly measurements: readonly Measurement[];
}

/** Lets running workers warm up, then measures them. No task starts or stops during the measurement. */
export async function measureWindow(
  workerGroup: WorkerGroup,
  site: Site | EngineSite,
  { warmUpMs, measureMs }: Timing,
): Promise<Window> {
  await sleep(warmUpMs);
  const [statsBefore] = await Promise.all([statsOf(site), workerGroup.begin()]);
  const startedAt = performance.now();
  await sleep(measureMs);
  const elapsedMs = performance.now() - startedAt;
  const [statsAfter, measurements] = await Promise.all([statsOf(site), workerGroup.end()]);
  return {
    elapsedMs,
    serverCommands: statsAfter.commands - statsBefore.commands,
    serverCpuMs: statsAfter.cpuMs - statsBefore.cpuMs,
    measurements,
  };
}

/** The sums over all servers of the site. */
async function statsOf(site: Site | EngineSite): Promise<ServerStats> {
  if ("engine" in site) return site.readStats();
  const stats = await Promise.all(site.servers.map(({ admin }) => readStats(admin)));
  return {
    commands: sum(stats.map(({ commands }) => commands)),
    cpuMs: sum(stats.map(({ cpuMs }) => cpuMs)),
  };
}
