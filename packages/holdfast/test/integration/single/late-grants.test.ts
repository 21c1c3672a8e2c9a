import { createLocks, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import {
  onCleanup,
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  shared,
  warmUp,
} from "../../support/fault-fixture.ts";

const many = 200;

onSharedRedis("a grant by notification that comes late", () => {
  test(`ends none of ${many} leases in use by its own process`, async () => {
    const { here, there, proxy } = await fixture();
    const keys = Array.from({ length: many }, newKey);
    const held = await Promise.all(keys.map((key) => there.acquire(key, { ttlMs: 60_000 })));
    const waiting = keys.map((key) => here.acquire(key, { ttlMs: 60_000 }));
    await waitUntil(async () => (await direct.keys("holdfast:queue:*")).length === many, "all callers wait");
    proxy.pause("messages");
    await Promise.all(held.map((lease) => lease.release()));
    const leases = await Promise.all(waiting); // by reply, because the notifications are delayed
    proxy.resume("messages");
    await awaitSubscribed(here, there);
    expect(await direct.keys("lock:*")).toHaveLength(many);
    expect(await Promise.all(keys.slice(0, 20).map((key) => there.tryAcquire(key)))).toEqual(
      Array.from({ length: 20 }, () => null),
    );
    expect(leases.filter((lease) => lease.signal.aborted)).toEqual([]);
    const released = await Promise.all(leases.map((lease) => lease.release()));
    expect(released.filter((wasOurs) => !wasOurs)).toEqual([]);
  });

  test("does not release a lease that another process has adopted", async () => {
    const { here, there, proxy } = await fixture();
    const key = newKey();
    const ttlMs = 300;
    const held = await there.acquire(key, { ttlMs: 1_000 }); // a waiter polls after this delay
    const waiting = here.acquire(key, { ttlMs, renew: false });
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "the waiter is queued");
    proxy.pause("messages");
    await held.release();
    const given = (await waiting).transfer();
    const adopted = await there.adopt({ ...given, ttlMs: 60_000 });
    await adopted.extend(60_000);
    const sent = performance.now();
    await waitUntil(() => performance.now() - sent > 3 * ttlMs, "the first process has forgotten the lease");
    proxy.resume("messages");
    await awaitSubscribed(here, there);
    expect(await here.tryAcquire(key)).toBeNull();
    expect(await adopted.release()).toBe(true);
  });
});

/**
 * Two processes, one of them connected through a proxy. Its grants by notification last long enough that a
 * wrong release is noticed.
 */
async function fixture(): Promise<{
  here: Locks;
  there: Locks;
  proxy: Awaited<ReturnType<typeof ownProxy>>;
}> {
  const proxy = await ownProxy(shared);
  const here = createLocks(redis(connect(proxy.port), { claimMs: 60_000 }), { closeTimeoutMs: 1_000 });
  onCleanup(() => here.close());
  const there = open(connect(shared.port));
  await Promise.all([warmUp(here), warmUp(there)]);
  return { here, there, proxy };
}

/**
 * Waits until a grant by notification and all earlier notifications are received, and the commands after them
 * are executed.
 */
async function awaitSubscribed(here: Locks, there: Locks): Promise<void> {
  const key = newKey();
  const held = await there.acquire(key, { ttlMs: 60_000 });
  const waiting = here.acquire(key);
  await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "the waiter is queued");
  await held.release();
  await (await waiting).release();
  await here.inspect(key);
}
