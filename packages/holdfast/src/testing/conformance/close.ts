import assert from "node:assert/strict";

import { later, refused, type Cases } from "./fixture.ts";

export const close: Cases = {
  "close rejects waiting callers and releases held leases": async ({ there, key, open, queued }) => {
    const locks = open("here");
    const lease = await locks.acquire(key);
    await there.acquire(`${key}:other`);
    const inLocalQueue = later(locks.acquire(key));
    const atEngine = later(locks.acquire(`${key}:other`));
    await queued(1, `${key}:other`);
    await locks.close();
    await refused(inLocalQueue, "closed");
    await refused(atEngine, "closed");
    assert.throws(() => lease.throwIfLost(), { code: "lease-lost" });
    await there.acquire(key); // a wait, because a slow engine may answer the release after `closeTimeoutMs`
    await queued(0, `${key}:other`);
  },

  "after close every call rejects": async ({ key, open }) => {
    const locks = open("here");
    await locks.close();
    await locks.close();
    await refused(locks.acquire(key), "closed");
    await refused(locks.tryAcquire(key), "closed");
    await refused(locks.inspect(key), "closed");
  },

  "closing one Locks does not affect another on the same driver": async ({ here, key, open }) => {
    const lease = await here.acquire(key);
    await open("here").close();
    lease.throwIfLost();
    assert.equal(await lease.release(), true);
  },
};
