import { createLocks, isLockError, type LeaseLostError, type Locks, type LocksOptions } from "holdfast";
import { memory } from "holdfast/memory";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { afterEach, beforeEach, expect, vi } from "vitest";

import type { Driver } from "../../src/driver.ts";
import { EngineError } from "../../src/errors.ts";
import { altered } from "./altered.ts";

export const ttlMs = 3_000;
/** 3 000 ms less the drift of 32 ms. */
export const endMs = 2_968;
/** If no timer has been late, the loss is declared 2 ms before the end. */
export const lossMs = endMs - 2;
export const unreachable = new EngineError("the engine is away", { outcome: "unknown", retryable: true });

export let clock: ManualClock;
export let engine: Driver;
let opened: Locks[];

/** Every test of the file has its own clock and engine, and leaves no timer. */
export function onManualClock(): void {
  beforeEach(() => {
    clock = manualClock({ wall: 1_000_000 });
    engine = memory({ clock, random: manualRandom(1) });
    opened = [];
  });

  afterEach(async () => {
    const closing = Promise.all(opened.map((locks) => locks.close()));
    await clock.advance(5_000);
    await closing;
    await engine.close();
    expect(clock.timers()).toBe(0);
  });
}

/** One process at the engine, with other replies to some calls. */
export function open(changes: Partial<Driver> = {}, options?: LocksOptions): Locks {
  const locks = createLocks(altered(engine, { close: async () => undefined, ...changes }), options);
  opened.push(locks);
  return locks;
}

/** One process, with a spy on the requests that it sends to the engine. */
export function openCounted(): { locks: Locks; acquire: ReturnType<typeof vi.fn> } {
  const acquire = vi.fn(engine.acquire.bind(engine));
  return { locks: open({ acquire }), acquire };
}

/** The present result of a promise, or "pending". */
export async function settled(promise: Promise<unknown>): Promise<unknown> {
  let result: unknown = "pending";
  promise.then(
    (value) => (result = value),
    (error: unknown) => (result = error),
  );
  await clock.advance(0);
  return result;
}

export function lost(reason: string): unknown {
  return expect.toSatisfy((error: unknown) => isLockError(error, "lease-lost") && hasReason(error, reason));
}

function hasReason(error: unknown, reason: string): boolean {
  return (error as LeaseLostError).reason === reason;
}
