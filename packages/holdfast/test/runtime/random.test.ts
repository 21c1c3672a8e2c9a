import { randomBytes } from "node:crypto";

import { expect, test } from "vitest";

import type { Clock } from "../../src/runtime/clock.ts";
import { pooledRandom, systemRandom } from "../../src/runtime/random.ts";

test("ids are 32 hex digits, and different", () => {
  const ids = Array.from({ length: 1_000 }, () => systemRandom.id());
  expect(ids.every((id) => /^[\da-f]{32}$/.test(id))).toBe(true);
  expect(new Set(ids).size).toBe(1_000);
});

test("buffered ids are discarded after a jump of the wall clock, because a clone of the machine has the same ids", () => {
  let [now, wall] = [0, 1_000_000];
  const clock = { now: () => now, wall: () => wall } as Clock;
  let draws = 0;
  const random = pooledRandom(clock, (bytes) => {
    draws += 1;
    return randomBytes(bytes);
  });
  const drawsAfter = (nowMs: number, wallMs: number): number => {
    [now, wall] = [now + nowMs, wall + wallMs];
    random.id();
    return draws;
  };
  expect(drawsAfter(0, 0)).toBe(1);
  expect(drawsAfter(60_000, 60_000)).toBe(1);
  expect(drawsAfter(0, 100)).toBe(2);
  expect(drawsAfter(0, -100)).toBe(3);
});
