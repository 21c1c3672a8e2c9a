import { expect, test } from "vitest";

import { latenessOf, spreadTimes, takeoverAt, type Takeover } from "../src/measure/takeovers.ts";

function taken(afterKillMs: number, afterLeaseMs = 0): Takeover {
  return { outcome: "taken", afterKillMs, afterLeaseMs };
}

test("a takeover counts from the kill and from the end of the lease", () => {
  expect(takeoverAt({ killedAt: 1_000, leaseEndsAt: 2_500, grantedAt: 2_510 })).toEqual(taken(1_510, 10));
});

test("a grant before the kill is no takeover, and the reason states by how much", () => {
  expect(takeoverAt({ killedAt: 1_000, leaseEndsAt: 2_500, grantedAt: 990 })).toEqual({
    outcome: "early",
    reason: "granted 10 ms before the holder was killed",
  });
});

test("lateness is the time from the kill to the grant, less the TTL", () => {
  const lateness = latenessOf([taken(1_500, 3), taken(2_100, 40), taken(1_900, 5)], 2_000);
  expect(lateness).toEqual({ late: -100, lateMax: 100, afterKill: 1_900, afterLease: 5, afterLeaseMax: 40 });
});

test("a wait without a takeover has no lateness", () => {
  const failed: Takeover = { outcome: "failed", reason: "no" };
  expect(latenessOf([failed, taken(1_500), failed], 2_000)).toMatchObject({ late: -500, lateMax: -500 });
  expect(Object.values(latenessOf([failed], 2_000))).toEqual([NaN, NaN, NaN, NaN, NaN]);
});

test("moments are spread, with one in each equal part of the range", () => {
  expect(spreadTimes(3, [300, 1_500], () => 0)).toEqual([300, 700, 1_100]);
  expect(spreadTimes(3, [300, 1_500], () => 0.5)).toEqual([500, 900, 1_300]);
});
