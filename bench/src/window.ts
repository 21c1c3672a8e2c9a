import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Crew } from "./crew.ts";
import type { Measurement } from "./protocol.ts";
import { readStats } from "./server-stats.ts";

export interface Timing {
  /** Runs, but is not counted. */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

export function timingText({ warmUpMs, measureMs }: Timing): string {
  return `Every figure over ${measureMs / 1000} s after ${warmUpMs / 1000} s of warm-up`;
}

/** What a crew and the server did in the same stretch of time. */
export interface Window {
  readonly elapsedMs: number;
  readonly serverCommands: number;
  readonly serverCpuMs: number;
  readonly measurements: readonly Measurement[];
}

/** Lets a running crew warm up, then watches it. Nothing is started or stopped meanwhile. */
export async function watch(crew: Crew, admin: Redis, { warmUpMs, measureMs }: Timing): Promise<Window> {
  await sleep(warmUpMs);
  const [before] = await Promise.all([readStats(admin), crew.begin()]);
  const startedAt = performance.now();
  await sleep(measureMs);
  const elapsedMs = performance.now() - startedAt;
  const [after, measurements] = await Promise.all([readStats(admin), crew.end()]);
  return {
    elapsedMs,
    serverCommands: after.commands - before.commands,
    serverCpuMs: after.cpuMs - before.cpuMs,
    measurements,
  };
}
