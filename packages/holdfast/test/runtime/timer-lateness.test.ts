import { manualClock, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import { TimerLateness } from "../../src/runtime/timer-lateness.ts";

const ttlMs = 30_000;

let clock: ManualClock;
let lateness: TimerLateness;

beforeEach(() => {
  clock = manualClock({ now: 1_000_000 });
  lateness = new TimerLateness(clock);
});

function lateBy(ms: number): void {
  lateness.record(clock.now() - ms);
}

test("without a late timer the lead is 2 ms, also of the shortest TTL", () => {
  expect([lateness.leadMs(ttlMs), lateness.leadMs(100)]).toEqual([2, 2]);
});

test("the lead is the worst lateness and 2 ms; a timer that ran early changes nothing", () => {
  for (const ms of [3, 11, 0, -4, 5]) {
    lateBy(ms);
  }
  expect(lateness.leadMs(ttlMs)).toBe(13);
  const early = new TimerLateness(clock);
  early.record(clock.now() + 5);
  expect(early.leadMs(ttlMs)).toBe(2);
});

test("the lead is at most a twentieth of the TTL and 50 ms, however late a timer ran", () => {
  lateBy(10_000);
  expect([100, 600, 1_000, ttlMs].map((ttl) => lateness.leadMs(ttl))).toEqual([5, 30, 50, 50]);
});

test("a late timer counts for the window of 30 s in which it ran, and for the next", async () => {
  await clock.advance(29_000);
  lateBy(20);
  await clock.advance(2_000);
  lateBy(1);
  expect(lateness.leadMs(ttlMs)).toBe(22);
  await clock.advance(29_000);
  lateBy(0);
  expect(lateness.leadMs(ttlMs)).toBe(22);
  await clock.advance(1_000);
  lateBy(0);
  expect(lateness.leadMs(ttlMs)).toBe(3);
});

test("after two windows without a timer the last window does not count", async () => {
  lateBy(20);
  await clock.advance(60_000);
  lateBy(0);
  expect(lateness.leadMs(ttlMs)).toBe(2);
});
