import { expect, test } from "vitest";

import type { Measurement, TaskMeasurement } from "../src/run/protocol.ts";
import { waitsOf } from "../src/measure/waits.ts";

function task(waitsMs: readonly number[], pendingMs: number | null = null): TaskMeasurement {
  return { waitsMs: Float64Array.from(waitsMs), pendingMs };
}

function measured(...tasks: TaskMeasurement[]): Measurement {
  return {
    elapsedMs: 1_000,
    cpuMs: 0,
    tasks,
    holds: new Float64Array(),
    leasesLost: 0,
    failures: 0,
    firstFailure: null,
  };
}

test("percentiles are measured waits, over the tasks of all processes", () => {
  const waits = waitsOf([measured(task([4, 1]), task([2])), measured(task([3]))]);
  expect(waits).toMatchObject({ p50: 2, p99: 4, max: 4 });
});

test("a wait that has not ended counts with its duration so far", () => {
  expect(waitsOf([measured(task([1, 1]), task([], 900))]).max).toBe(900);
});

test("a task with nearly all grants hides the others in p50, but not in p50 by time", () => {
  const busy = task(Array.from({ length: 1_000 }, () => 0.1));
  const starved = task([], 1_000);
  const waits = waitsOf([measured(busy, starved)]);
  expect(waits).toMatchObject({ p50: 0.1, p99: 0.1, p50ByTime: 1_000 });
});

test("waits of the same length are their own median by time", () => {
  expect(waitsOf([measured(task([5, 5, 5, 5]))]).p50ByTime).toBe(5);
});

test("without waits the figures are NaN", () => {
  expect(waitsOf([measured(task([]))])).toEqual({ p50: NaN, p90: NaN, p99: NaN, max: NaN, p50ByTime: NaN });
});
