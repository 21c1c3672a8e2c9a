import { setTimeout as sleep } from "node:timers/promises";

import { ServerClocks, waitUntil } from "@holdfast/test-kit";
import type { Locks } from "holdfast";
import { expect, onTestFinished, test } from "vitest";

import { connect, newKey, onSharedRedis, open, ownServer, warmUp } from "../../support/fault-fixture.ts";

const ttlMs = 120_000;
/** Shorter than a waiter's poll, which would find the lock free at some time. */
const waitMs = 4_000;

/**
 * The clock was set before a process sends its next request, as when its machine was suspended and the server
 * was not. The process writes the tickets and deadlines of its waiters by an estimate of that clock.
 */
onSharedRedis("with a server whose clock was set since a process last sent a request", () => {
  test.each([
    ["forward by more than a wait", 12_000],
    ["forward by less than a second", 500],
    ["back by more than a wait", -12_000],
  ])("a waiter of that process is served in its turn: %s", async (_how, aheadMs) => {
    const clocks = await ServerClocks.make(1);
    onTestFinished(() => clocks[Symbol.asyncDispose]());
    const [clock] = clocks.clocks;
    const server = await ownServer(clock && { env: clock.env });
    const makeLocks = (): Locks => open(connect(server.port), {}, { handover: false });
    const [late, ...others] = Array.from({ length: 6 }, makeLocks) as [Locks, ...Locks[]];
    await Promise.all([late, ...others].map(warmUp));
    clock?.set({ aheadMs });
    await Promise.all(others.map(warmUp));
    const key = newKey();
    let isOver = false;
    let served = 0;
    const work = others.map(async (locks) => {
      while (!isOver) {
        await locks.withLock(key, { ttlMs, waitMs: 30_000 }, () => sleep(20));
        served += 1;
      }
    });
    await waitUntil(async () => (await others[0]?.inspect(key))?.waiterCount === 4, "the others are queued");
    const before = served;
    const lease = await late.acquire(key, { ttlMs, waitMs }).finally(() => (isOver = true));
    expect(served - before).toBeLessThan(others.length * 3);
    await lease.release();
    await Promise.all(work);
  });
});
