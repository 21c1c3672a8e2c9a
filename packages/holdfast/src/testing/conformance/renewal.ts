import assert from "node:assert/strict";

import { LeaseLostError } from "../../errors.ts";
import { aborted, granted, later, refused, type Cases } from "./fixture.ts";

export const renewal: Cases = {
  "release returns true, and a second release the same": async ({ here, there, key }) => {
    const lease = await here.acquire(key);
    assert.equal(await lease.release(), true);
    assert.equal(await lease.release(), true);
    assert.equal(lease.remainingMs(), 0);
    assert.throws(() => lease.throwIfLost(), { code: "lease-lost", reason: "released" });
    granted(await there.tryAcquire(key));
  },

  "disposing a lease releases it": async ({ here, there, key }) => {
    const lease = await here.acquire(key);
    await lease[Symbol.asyncDispose]();
    granted(await there.tryAcquire(key));
  },

  "extend raises the TTL of a lease and never lowers it": async ({ here, key }) => {
    const lease = await here.acquire(key, { ttlMs: 2_000, renew: false });
    await lease.extend(20_000);
    assert.ok(lease.remainingMs() > 10_000);
    await lease.extend(200);
    assert.ok(lease.remainingMs() > 10_000);
    assert.ok(((await here.inspect(key)).remainingMs ?? 0) > 10_000);
  },

  "an expired lease frees the lock for a waiter, and its holder knows before": async (fixture) => {
    const { here, there, key } = fixture;
    const lease = await here.acquire(key, { ttlMs: 150, renew: false });
    const { signal } = lease;
    const next = await there.acquire(key);
    assert.equal(lease.remainingMs(), 0);
    assert.throws(() => lease.throwIfLost(), { code: "lease-lost", reason: "expired" });
    assert.equal(signal.aborted, true);
    assert.equal(await lease.release(), false);
    next.throwIfLost();
    assert.equal(await next.release(), true);
  },

  "the signal of a lease aborts at its expiry": async ({ here, key }) => {
    const lease = await here.acquire(key, { ttlMs: 150, renew: false });
    const reason = await aborted(lease.signal);
    assert.ok(reason instanceof LeaseLostError);
    assert.equal(reason.reason, "expired");
  },

  "a lost lease cannot be extended": async ({ here, there, key }) => {
    const lease = await here.acquire(key, { ttlMs: 150, renew: false });
    await (await there.acquire(key)).release();
    await refused(lease.extend(), "lease-lost");
    granted(await there.tryAcquire(key));
  },

  "renewal holds a lease for many times its TTL": async ({ here, there, key, open, pause }) => {
    const ttlMs = 2_000; // a busy machine may delay a renewal by two thirds of this
    const lease = await here.acquire(key, { ttlMs });
    const waiter = later(there.acquire(key));
    await pause(2.5 * ttlMs);
    lease.throwIfLost();
    assert.equal(await open("there").tryAcquire(key), null);
    assert.equal(await lease.release(), true);
    await (await waiter).release();
  },

  "an orphaned lease expires": async ({ here, there, key }) => {
    const lease = await here.acquire(key, { ttlMs: 1_000 });
    lease.orphan();
    assert.equal(await there.tryAcquire(key), null);
    const next = await there.acquire(key);
    assert.equal(await next.release(), true);
  },
};
