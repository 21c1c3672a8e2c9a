import type { Measurement, TaskMeasurement } from "../run/protocol.ts";
import { sum, tasksIn } from "./statistics.ts";

export interface WaitFigures {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  /**
   * Half of all waiting time was spent in waits of at least this length. If one task gets the lock again and again while others
   * starve, nearly all waits are its own short ones. The percentiles over all waits then hide the starving tasks.
   */
  readonly p50ByTime: number;
}

/** A wait that has not ended counts with its duration so far. */
export function waitsOf(measurements: readonly Measurement[]): WaitFigures {
  const waits = Float64Array.from(tasksIn(measurements).flatMap(waitsOfTask)).sort();
  return {
    p50: percentile(waits, 0.5),
    p90: percentile(waits, 0.9),
    p99: percentile(waits, 0.99),
    max: percentile(waits, 1),
    p50ByTime: medianByTime(waits),
  };
}

/** The nearest rank, so that the result is a measured wait. */
function percentile(sorted: Float64Array, fraction: number): number {
  return sorted[Math.max(1, Math.ceil(fraction * sorted.length)) - 1] ?? Number.NaN;
}

function medianByTime(sorted: Float64Array): number {
  const half = sum(sorted) / 2;
  let shorterMs = 0;
  for (const waitMs of sorted) {
    shorterMs += waitMs;
    if (shorterMs >= half) return waitMs;
  }
  return Number.NaN;
}

function waitsOfTask({ waitsMs, pendingMs }: TaskMeasurement): number[] {
  return pendingMs === null ? Array.from(waitsMs) : [...waitsMs, pendingMs];
}
