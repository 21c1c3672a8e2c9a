import { expect, test } from "vitest";

import { closeSimulated, simulateRedis } from "../support/simulated-redis.ts";

const ttlMs = 3_000;

test("a downgrade does not extend an unrenewed lease that was granted by notification", async () => {
  const world = await simulateRedis(2);
  const { clock, locks } = world;
  const [here, there] = locks as [(typeof locks)[0], (typeof locks)[0]];
  const holding = there.readWrite("k").write.acquire({ ttlMs: 60_000 });
  await clock.advance(10);
  const waiting = here.readWrite("k").write.acquire({ ttlMs, renew: false });
  await clock.advance(10);
  const released = (await holding).release();
  await clock.advance(10);
  await released;
  const writer = await waiting;
  await clock.advance(ttlMs / 2);
  const { validUntil } = writer;
  expect(validUntil - clock.now()).toBeGreaterThan(1_000); // the lease is longer than a claim
  const downgrading = writer.downgrade();
  await clock.advance(100);
  const reader = await downgrading;
  expect(reader.validUntil).toBe(validUntil);
  await clock.advance(ttlMs / 2);
  expect(reader.remainingMs()).toBe(0);
  await closeSimulated(world);
});
