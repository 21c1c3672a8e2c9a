import assert from "node:assert/strict";

import { granted, later, sharedByProcesses, type Scenes } from "./stage.ts";

export const attempts: Scenes = {
  "a repeat of an attempt claims the same grant": async ({ here, key }) => {
    const first = await here.acquire(key, { attemptId: "order 555" });
    const again = await here.acquire(key, { attemptId: "order 555" });
    const tried = granted(await here.tryAcquire(key, { attemptId: "order 555" }));
    assert.equal(again.fencingToken, first.fencingToken);
    assert.equal(tried.fencingToken, first.fencingToken);
    assert.equal(await here.tryAcquire(key, { attemptId: "order 556" }), null);
  },

  "another process may repeat an attempt": async ({ here, there, key }) => {
    const first = await here.acquire(key, sharedByProcesses);
    const again = await there.acquire(key, sharedByProcesses);
    assert.equal(again.fencingToken, first.fencingToken);
    assert.equal(await again.release(), true);
    assert.equal((await here.inspect(key)).holders.length, 0);
  },

  "a repeat joins an attempt that still waits": async (stage) => {
    const { here, there, key } = stage;
    // A short TTL, as an engine may let the repeat look again when it could be over.
    const holder = await stage.open("here").acquire(key, { ttlMs: 1_000 });
    const first = later(here.acquire(key, { ...sharedByProcesses, waitMs: 20_000 }));
    await stage.queued(1);
    const again = later(there.acquire(key, { ...sharedByProcesses, waitMs: 20_000 }));
    await stage.pause(50);
    await holder.release();
    assert.equal((await first).fencingToken, (await again).fencingToken);
  },

  "one attempt is good for any number of keys": async ({ here, key }) => {
    granted(await here.tryAcquire(`${key}:a`, { attemptId: "order 555" }));
    granted(await here.tryAcquire(`${key}:b`, { attemptId: "order 555" }));
  },

  "an attempt that was released is granted anew": async ({ here, key }) => {
    const first = await here.acquire(key, { attemptId: "order 555" });
    await first.release();
    const again = await here.acquire(key, { attemptId: "order 555" });
    assert.ok(again.fencingToken > first.fencingToken);
  },

  "a repeat never shortens the TTL": async ({ here, key }) => {
    await here.acquire(key, { attemptId: "order 555", ttlMs: 20_000 });
    await here.acquire(key, { attemptId: "order 555", ttlMs: 200, renew: false });
    assert.ok(((await here.inspect(key)).remainingMs ?? 0) > 10_000);
  },
};
