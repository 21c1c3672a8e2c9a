import { waitUntil } from "@holdfast/test-kit";
import type { Locks } from "holdfast";
import { expect, test } from "vitest";

import { systemClock } from "../../../src/runtime/clock.ts";
import { connect, direct, newKey, onSharedRedis, open, shared, warmUp } from "../../support/fault-fixture.ts";

const [longTtlMs, shortTtlMs] = [10_000, 1_000];
const limit = 1;

onSharedRedis("a semaphore", () => {
  test.each([
    ["in time", 0],
    ["11 s ahead", 11_000],
    ["11 s behind", -11_000],
  ])(
    "a permit stays with its holder, whatever TTL or clock another client has: one that is %s",
    async (_, aheadMs) => {
      const [here, there] = [withClock(0), withClock(aheadMs)];
      await Promise.all([warmUp(here), warmUp(there)]);
      for (const [holders, others] of [
        [here, there],
        [there, here],
      ] as const) {
        const key = newKey();
        const holder = await holders.semaphore(key, { limit }).acquire({ ttlMs: longTtlMs, renew: false });
        const other = others.semaphore(key, { limit });
        expect(await other.tryAcquire({ ttlMs: shortTtlMs })).toBeNull();
        const waiting = other.acquire({ ttlMs: shortTtlMs, waitMs: 60_000 });
        const waits = async (): Promise<boolean> => (await here.inspect(key)).waiterCount === 1;
        await waitUntil(waits, "the other client is queued");
        // Longer than the TTL of the other client. With its first values or its clock, the other client might
        // regard the permit as expired.
        const since = performance.now();
        while (performance.now() - since < shortTtlMs + 300) {
          expect(await others.semaphore(key, { limit }).tryAcquire({ ttlMs: shortTtlMs })).toBeNull();
          expect(await direct.zcard(`lock:${key}`)).toBe(1);
        }
        holder.throwIfLost();
        expect(holder.remainingMs()).toBeGreaterThan(0);
        expect(await holder.release()).toBe(true);
        const next = await waiting;
        expect(next.fencingToken).toBeGreaterThan(holder.fencingToken);
        expect(await next.release()).toBe(true);
      }
    },
  );
});

/** A client whose wall clock is set to this offset. */
function withClock(aheadMs: number): Locks {
  return open(connect(shared.port), { clock: { ...systemClock, wall: () => Date.now() + aheadMs } });
}
