import { createLocks, type Lease } from "holdfast";
import { memory } from "holdfast/memory";
import { expect, test } from "vitest";

import type { ExtendResult } from "../../src/driver.ts";
import { contended } from "../../src/testing/conformance/fixture.ts";
import { altered } from "../support/altered.ts";
import { clock, endMs, onManualClock, open, settled, ttlMs, unreachable } from "../support/lease-fixture.ts";

// Runs of hand-overs with no bound except the tested one.

const endless = { handover: { max: 1_000, maxMs: 3_600_000 } };

onManualClock();

test("a handed-over lease has the next fencing token", async () => {
  const locks = open({}, endless);
  const held = await contended(locks, "k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  await clock.advance(500);
  await held.release();
  expect(((await settled(next)) as Lease).fencingToken).toBe(held.fencingToken + 1n);
});

test("a lease with less than a third of its TTL is released to the engine", async () => {
  const notRenewed = async (): Promise<ExtendResult> => ({ outcome: "unknown", error: unreachable });
  const locks = open({ extend: notRenewed }, endless);
  const held = await contended(locks, "k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  await clock.advance(endMs - 999);
  await held.release();
  expect(((await settled(next)) as Lease).fencingToken).toBeGreaterThan(held.fencingToken + 100n);
});

test("a caller without renewal gets a whole TTL", async () => {
  const locks = open({}, endless);
  const held = await contended(locks, "k", { ttlMs });
  const next = locks.acquire("k", { ttlMs, renew: false });
  await clock.advance(500);
  await held.release();
  expect(((await settled(next)) as Lease).remainingMs()).toBe(endMs);
});

test("a lease that ended while the event loop was blocked is not handed over", async () => {
  const locks = open({}, endless);
  const held = await contended(locks, "k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  await clock.advance(0);
  clock.block(ttlMs);
  expect(await held.release()).toBe(false);
  const lease = (await settled(next)) as Lease;
  expect(lease.fencingToken).toBeGreaterThan(held.fencingToken + 100n);
  expect(lease.remainingMs()).toBe(endMs);
});

test("the fencing tokens of a run of any length are smaller than those of the next run", async () => {
  const [ours, theirs] = [open({}, endless), open()];
  let newest = 0n;
  const held = await contended(ours, "k", { ttlMs });
  const callers = Array.from({ length: 100 }, async () => {
    const lease = await ours.acquire("k", { ttlMs });
    expect(lease.fencingToken).toBeGreaterThan(newest);
    newest = lease.fencingToken;
    await lease.release();
  });
  await held.release();
  await Promise.all(callers);
  expect((await theirs.acquire("k", { ttlMs })).fencingToken).toBeGreaterThan(newest);
});

test("a lease that the server has lost is stale for its own process without a notification", async () => {
  const driver = memory({ clock });
  const other = createLocks(driver);
  let breaks = false;
  const deaf = altered(driver, {
    listen: () => () => undefined,
    verify: async (key, token, first) => {
      if (breaks) {
        await other.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" });
      }
      return driver.verify(key, token, first);
    },
  });
  const locks = createLocks(deaf, endless);
  const lease = await contended(locks, "k", { ttlMs });
  expect(await locks.checkFence("k", lease.fencingToken)).toBe("current");
  expect(await other.checkFence("k", lease.fencingToken)).toBe("unknown");
  breaks = true;
  expect(await locks.checkFence("k", lease.fencingToken)).toBe("stale");
  await Promise.all([locks.close(), other.close()]);
});
