import { manualClock } from "holdfast/testing";
import { expect, test } from "vitest";

import { elapsedSince, instantNow } from "../src/runtime/clock.ts";
import { driftAllowanceMs, remainingValidityMs, extendValidity, validFrom } from "../src/validity.ts";

test("clocks may disagree by one percent of the TTL and 2 ms", () => {
  expect([driftAllowanceMs(100), driftAllowanceMs(30_000)]).toEqual([3, 302]);
});

test("validity counts from the sending of the request, on both clocks, less the drift", async () => {
  const clock = manualClock({ now: 50, wall: 1_000 });
  const sent = instantNow(clock);
  await clock.advance(400); // the latency of the reply
  const validity = validFrom(sent, 1_000);
  expect(validity).toEqual({ until: 50 + 1_000 - 12, untilWall: 1_000 + 1_000 - 12 });
  expect(remainingValidityMs(validity, clock)).toBe(588);
});

test("a TTL that began before the request leaves less", () => {
  expect(validFrom({ now: 0, wall: 0 }, 1_000, 100).until).toBe(888);
  expect(validFrom({ now: 0, wall: 0 }, 1_000, -100).until).toBe(1_088);
});

test("validity ends as soon as either clock reaches its end", async () => {
  const clock = manualClock();
  const validity = validFrom(instantNow(clock), 1_000);
  clock.sleep(700);
  expect(remainingValidityMs(validity, clock)).toBe(288);
  clock.jumpWall(-5_000);
  expect(remainingValidityMs(validity, clock)).toBe(988);
  await clock.advance(989);
  expect(remainingValidityMs(validity, clock)).toBe(-1);
});

test("a confirmation extends, and a late confirmation does not shorten", () => {
  const clock = manualClock({ now: 0, wall: 1_000 });
  const validity = { until: 100, untilWall: 1_100 };
  extendValidity(validity, { until: 300, untilWall: 1_300 }, clock);
  extendValidity(validity, { until: 200, untilWall: 1_200 }, clock);
  expect(validity).toEqual({ until: 300, untilWall: 1_300 });
});

test("a confirmation with more remaining time on the stricter clock counts, even if its end is earlier on the other", () => {
  const clock = manualClock({ now: 0, wall: 1_000 });
  const validity = { until: 500, untilWall: 1_500 };
  clock.jumpWall(400);
  extendValidity(validity, { until: 300, untilWall: 1_700 }, clock);
  expect(remainingValidityMs(validity, clock)).toBe(300);
});

test("the elapsed time is that of the clock that advanced further", async () => {
  const clock = manualClock();
  const start = instantNow(clock);
  await clock.advance(100);
  clock.sleep(50);
  expect(elapsedSince(start, clock)).toBe(150);
  clock.jumpWall(-90);
  expect(elapsedSince(start, clock)).toBe(100);
});
