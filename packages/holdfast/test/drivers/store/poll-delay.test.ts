import { manualRandom } from "holdfast/testing";
import { describe, expect, test } from "vitest";

import { entryTtlMs, pollDelayMs, type PollState } from "../../../src/drivers/store/poll-delay.ts";

const random = manualRandom(1);
const state = { position: 0, remainingMs: Infinity, polls: 0, isWoken: false };

function delays(changes: Partial<PollState>): number[] {
  return Array.from({ length: 200 }, () => pollDelayMs(random, { ...state, ...changes }));
}

describe("the delay between two polls", () => {
  test("doubles while the queue stands still, up to a limit", () => {
    expect(Math.max(...delays({ polls: 0 }))).toBeLessThan(1.5);
    expect(Math.min(...delays({ polls: 2 }))).toBeGreaterThanOrEqual(4);
    expect(Math.max(...delays({ polls: 1_000 }))).toBeLessThan(150);
  });

  test("grows with the position", () => {
    expect(Math.min(...delays({ position: 9 }))).toBeGreaterThanOrEqual(10);
    expect(Math.max(...delays({ position: 9, polls: 50 }))).toBeLessThan(1_500);
  });

  test("is a second or more for a waiter that is woken", () => {
    expect(Math.min(...delays({ isWoken: true }))).toBeGreaterThanOrEqual(1_000);
  });

  test("ends at the expiry of the first grant, in the order of the queue", () => {
    expect(Math.max(...delays({ isWoken: true, remainingMs: 100 }))).toBe(101);
    expect(Math.max(...delays({ isWoken: true, remainingMs: 100, position: 2 }))).toBe(151);
  });

  test("leaves a queue entry enough time for a lost reply", () => {
    const longest = Math.max(...delays({ position: 10_000, polls: 1_000 }), ...delays({ isWoken: true }));
    expect(longest * 2).toBeLessThan(entryTtlMs);
  });

  test("is not zero while a transaction keeps a grant that has expired", () => {
    expect(Math.min(...delays({ remainingMs: -5_000 }))).toBeGreaterThanOrEqual(1);
  });
});
