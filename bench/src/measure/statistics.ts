import type { Measurement, TaskMeasurement } from "../run/protocol.ts";

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  if (sorted.length % 2 === 1) return upper;
  return ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

export function grantsIn(measurements: readonly Measurement[]): number {
  return sum(tasksIn(measurements).map(grantsOf));
}

export function grantsPerSecond(measurements: readonly Measurement[]): number {
  return sum(measurements.map(({ tasks, elapsedMs }) => (sum(tasks.map(grantsOf)) / elapsedMs) * 1000));
}

export function clientCpuMs(measurements: readonly Measurement[]): number {
  return sum(measurements.map(({ cpuMs }) => cpuMs));
}

/** The smallest and the largest share of a single task in all grants, in percent. */
export function grantShares(measurements: readonly Measurement[]): { smallest: number; largest: number } {
  const grants = tasksIn(measurements).map(grantsOf);
  const percent = 100 / sum(grants);
  return { smallest: Math.min(...grants) * percent, largest: Math.max(...grants) * percent };
}

/** The grants of the task with the fewest. If this number is small, shares are mostly chance. */
export function fewestGrants(measurements: readonly Measurement[]): number {
  return Math.min(...tasksIn(measurements).map(grantsOf));
}

export function tasksIn(measurements: readonly Measurement[]): TaskMeasurement[] {
  return measurements.flatMap(({ tasks }) => tasks);
}

function grantsOf({ waitsMs }: TaskMeasurement): number {
  return waitsMs.length;
}
