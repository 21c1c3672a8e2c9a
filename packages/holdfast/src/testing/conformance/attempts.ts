import assert from "node:assert/strict";

import { granted, later, type Cases } from "./fixture.ts";

const attempt = { attemptId: "order 555", ttlMs: 5_000 } as const;

export const attempts: Cases = {
  "a repeat of an attempt shares the grant, which ends with the last of its leases": async (fixture) => {
    const { here, there, key } = fixture;
    const first = await here.acquire(key, attempt);
    const again = await here.acquire(key, attempt);
    const tried = granted(await here.tryAcquire(key, attempt));
    assert.equal(again.fencingToken, first.fencingToken);
    assert.equal(tried.fencingToken, first.fencingToken);
    assert.equal(await here.tryAcquire(key, { attemptId: "order 556" }), null);
    assert.equal(await first.release(), true);
    assert.equal(await tried.release(), true);
    assert.equal(await there.tryAcquire(key), null);
    assert.equal(await again.release(), true);
    assert.equal((await there.inspect(key)).holders.length, 0);
  },

  "an attempt of the same name in another process is an ordinary contender": async ({ here, there, key }) => {
    const first = await here.acquire(key, attempt);
    assert.equal(await there.tryAcquire(key, attempt), null);
    const waiting = later(there.acquire(key, { ...attempt, waitMs: 20_000 }));
    assert.equal(await first.release(), true);
    const second = await waiting;
    assert.ok(second.fencingToken > first.fencingToken);
    assert.equal(await here.tryAcquire(key, attempt), null);
    assert.equal(await second.release(), true);
  },

  "a repeat joins a waiting attempt": async ({ here, key, open, queued }) => {
    const holder = await open("here").acquire(key);
    const first = later(here.acquire(key, { ...attempt, waitMs: 20_000 }));
    await queued(1);
    const again = later(here.acquire(key, { ...attempt, waitMs: 20_000 }));
    await holder.release();
    assert.equal((await first).fencingToken, (await again).fencingToken);
    await (await first).release();
    await (await again).release();
  },

  "one attempt may be used with any number of keys": async ({ here, key }) => {
    granted(await here.tryAcquire(`${key}:a`, attempt));
    granted(await here.tryAcquire(`${key}:b`, attempt));
  },

  "an attempt is granted again after its release": async ({ here, key }) => {
    const first = await here.acquire(key, attempt);
    await first.release();
    const again = await here.acquire(key, attempt);
    assert.ok(again.fencingToken > first.fencingToken);
  },
};
