import assert from "node:assert/strict";

import { granted, later, refused, type Cases } from "./fixture.ts";

export const close: Cases = {
  "close rejects who waits and releases what is held": async ({ there, key, open, queued }) => {
    const locks = open("here");
    const lease = await locks.acquire(key);
    await there.acquire(`${key}:other`);
    const inLine = later(locks.acquire(key));
    const atEngine = later(locks.acquire(`${key}:other`));
    await queued(1, `${key}:other`);
    await locks.close();
    await refused(inLine, "closed");
    await refused(atEngine, "closed");
    assert.throws(() => lease.throwIfLost(), { code: "lease-lost" });
    granted(await there.tryAcquire(key));
    await queued(0, `${key}:other`);
  },

  "after close everything is refused": async ({ key, open }) => {
    const locks = open("here");
    await locks.close();
    await locks.close();
    await refused(locks.acquire(key), "closed");
    await refused(locks.tryAcquire(key), "closed");
    await refused(locks.inspect(key), "closed");
  },

  "close of one leaves the others alone": async ({ here, key, open }) => {
    const lease = await here.acquire(key);
    await open("here").close();
    lease.throwIfLost();
    assert.equal(await lease.release(), true);
  },
};
