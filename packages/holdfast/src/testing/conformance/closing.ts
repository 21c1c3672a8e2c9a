import assert from "node:assert/strict";

import { granted, later, refused, type Scenes } from "./stage.ts";

export const closing: Scenes = {
  "close rejects who waits and releases what is held": async (stage) => {
    const { there, key } = stage;
    const locks = stage.open("here");
    const lease = await locks.acquire(key);
    await there.acquire(`${key}:other`);
    const inLine = later(locks.acquire(key));
    const atEngine = later(locks.acquire(`${key}:other`));
    await stage.queued(1, `${key}:other`);
    await locks.close();
    await refused(inLine, "closed");
    await refused(atEngine, "closed");
    assert.throws(() => lease.throwIfLost(), { code: "lease-lost" });
    granted(await there.tryAcquire(key));
    await stage.queued(0, `${key}:other`);
  },

  "after close everything is refused": async (stage) => {
    const { key } = stage;
    const locks = stage.open("here");
    await locks.close();
    await locks.close();
    await refused(locks.acquire(key), "closed");
    await refused(locks.tryAcquire(key), "closed");
    await refused(locks.inspect(key), "closed");
  },

  "close of one leaves the others alone": async (stage) => {
    const { here, key } = stage;
    const lease = await here.acquire(key);
    await stage.open("here").close();
    lease.throwIfLost();
    assert.equal(await lease.release(), true);
  },
};
