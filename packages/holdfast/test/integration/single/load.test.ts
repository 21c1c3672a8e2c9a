import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

import { expect, test } from "vitest";

import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  shared,
  start,
  warmUp,
} from "../../support/fault-fixture.ts";

onSharedRedis("a lease on a real server", () => {
  test("a TTL of 100 ms is renewed without a busy loop, and is not lost", async () => {
    const locks = open(connect(shared.port));
    await warmUp(locks);
    for (let attempt = 1; ; attempt += 1) {
      let lastTick = performance.now();
      let stallMs = 0;
      const ticking = setInterval(() => {
        stallMs = Math.max(stallMs, performance.now() - lastTick);
        lastTick = performance.now();
      }, 5);
      const lease = await locks.acquire(newKey(), { ttlMs: 100 });
      const before = await scriptCalls();
      await pause(1_000);
      const calls = (await scriptCalls()) - before;
      clearInterval(ticking);
      const isLost = lease.signal.aborted;
      await lease.release();
      expect(calls).toBeLessThan(60);
      if (!isLost || attempt === 4) {
        expect(isLost).toBe(false);
        expect(calls).toBeGreaterThan(15);
        return;
      }
      expect(stallMs).toBeGreaterThan(25); // only a busy machine may need fewer
    }
  });

  async function scriptCalls(): Promise<number> {
    const stats = await direct.info("commandstats");
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  test("a held lease does not keep its process alive", async () => {
    const { child, lines } = start("holds-and-ends.mjs", shared.port);
    const [code] = (await once(child, "close")) as [number | null];
    expect([lines, code]).toEqual([["held"], 0]);
    expect(await direct.pttl("lock:held")).toBeGreaterThan(30_000);
    await direct.del("lock:held");
  });
});
