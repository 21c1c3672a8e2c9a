import { setTimeout as sleep } from "node:timers/promises";
import type { WorkerGroup } from "../run/workers.ts";
import type { Measurement } from "../run/protocol.ts";
import { readStats, type ServerStats } from "./server-stats.ts";
import { sum } from "./statistics.ts";
import type { Site } from "../suites/suite.ts";

export interface Timing {
  /** Runs, but is not counted. */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

export function timingText({ warmUpMs, measureMs }: Timing): string {
  return `Every figure over ${measureMs / 1000} s after ${warmUpMs / 1000} s of warm-up`;
}

/** What a crew and the servers did in the same stretch of time. */
export interface Window {
  readonly elapsedMs: number;
  readonly serverCommands: number;
  readonly serverCpuMs: number;
  readonly measurements: readonly Measurement[];
}

/** Lets a running crew warm up, then watches it. Nothing is started or stopped meanwhile. */
export async function measureWindow(
  workerGroup: WorkerGroup,
  site: Site,
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

/** Of all its servers together. */
async function statsOf({ servers }: Site): Promise<ServerStats> {
  const stats = await Promise.all(servers.map(({ admin }) => readStats(admin)));
  return {
    commands: sum(stats.map(({ commands }) => commands)),
    cpuMs: sum(stats.map(({ cpuMs }) => cpuMs)),
  };
}
