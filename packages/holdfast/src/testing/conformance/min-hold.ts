import assert from "node:assert/strict";

import { granted, refused, type Cases } from "./fixture.ts";

const minHoldMs = 800;
/** A timer may be early by this time. */
const timerMs = 2;

export const minHold: Cases = {
  "minHoldMs keeps the key after an early release, and then serves the waiters": async ({
    here,
    there,
    key,
    now,
  }) => {
    const startedAt = now();
    const lease = await here.acquire(key, { minHoldMs });
    assert.equal(await lease.release(), true);
    assert.equal(lease.remainingMs(), 0);
    assert.equal(lease.signal.aborted, false);
    const second = await there.tryAcquire(key);
    // A busy machine may be later than the shortest hold.
    assert.ok(second === null || now() - startedAt >= minHoldMs - timerMs);
    await second?.release();
    const own = granted(await here.acquire(key)); // not handed over in memory before
    assert.ok(now() - startedAt >= minHoldMs - timerMs);
    assert.ok(own.fencingToken > lease.fencingToken);
    assert.equal(await own.release(), true);
  },

  "minHoldMs does not delay a later release, nor the keys of a failed acquire of several": async ({
    here,
    there,
    key,
    now,
  }) => {
    const lease = await here.acquire(key, { minHoldMs: 1 });
    const startedAt = now();
    while (now() - startedAt < 20) {
      await here.inspect(key);
    }
    assert.equal(await lease.release(), true);
    const blocker = await there.acquire(`${key}:2`);
    await refused(here.all([key, `${key}:2`]).acquire({ minHoldMs: 60_000, waitMs: 50 }), "wait-timeout");
    const free = granted(await there.acquire(key, { waitMs: 30_000 }));
    assert.equal(await free.release(), true);
    assert.equal(await blocker.release(), true);
  },
};
