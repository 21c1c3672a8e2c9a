import type { Measurement, TaskMeasurement } from "../run/protocol.ts";
import { sum, tasksIn } from "./statistics.ts";

export interface WaitFigures {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
  /**
   * Half of all waiting time was spent in waits at least this long: in which a task was, if it was seen waiting. Where
   * one task goes round and round while others sleep, nearly every wait is its own and short, and the percentiles over
   * all waits say nothing of those who starve.
   */
  readonly p50ByTime: number;
}

/** Waits that had not ended count with what they had lasted. */
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

/** Nearest rank: a wait that was really seen. */
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
