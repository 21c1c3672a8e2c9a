import { manualClock } from "holdfast/testing";
import { expect, test } from "vitest";

import { SweepSchedule } from "../../../src/drivers/store/sweep-schedule.ts";

const everyMs = 60_000;
const maxRows = 10;

test("a sweep is due after some releases of a new process, and then once in each period", async () => {
  const clock = manualClock();
  const schedule = new SweepSchedule(clock, everyMs, maxRows);
  expect(dueOf(schedule, 100)).toEqual([maxRows / 2]);
  await clock.advance(everyMs);
  expect(dueOf(schedule, 100)).toEqual([1]);
});

test("while sweeps remove as many rows as they may, they remove more rows than new keys need", async () => {
  const clock = manualClock();
  const schedule = new SweepSchedule(clock, everyMs, maxRows);
  await clock.advance(everyMs);
  expect(dueOf(schedule, 1)).toEqual([1]);
  for (let sweeps = 0; sweeps < 5; sweeps += 1) {
    schedule.swept(maxRows);
    expect(dueOf(schedule, maxRows / 2)).toEqual([maxRows / 2]);
  }
  schedule.swept(maxRows - 1);
  expect(dueOf(schedule, 100)).toEqual([]);
});

/** After which of the next releases a sweep is due. */
function dueOf(schedule: SweepSchedule, releases: number): number[] {
  return Array.from({ length: releases }, (_, index) => index + 1).filter(() => schedule.released());
}
