import assert from "node:assert/strict";

import { LeaseLostError } from "../../errors.ts";
import { aborted, granted, later, refused, type Cases } from "./fixture.ts";

export const severalKeys: Cases = {
  "all: a lease has every key or none": async ({ here, there, key }) => {
    const [a, b, c] = [`${key}:a`, `${key}:b`, `${key}:c`];
    const held = granted(await there.tryAcquire(b));
    assert.equal(await here.all([a, b, c]).tryAcquire(), null);
    await refused(here.all([a, b, c]).acquire({ waitMs: 500 }), "wait-timeout");
    for (const free of [a, c]) {
      await granted(await there.tryAcquire(free)).release();
    }
    await held.release();
    const lease = granted(await here.all([c, a, b, a]).tryAcquire());
    assert.deepEqual([lease.key, lease.keys], [a, [a, b, c]]);
    for (const acquired of [a, b, c]) {
      assert.equal(await there.tryAcquire(acquired), null);
    }
    assert.equal(await lease.release(), true);
    await granted(await there.tryAcquire(c)).release();
  },

  "all: each key has its own rising fencing token": async ({ here, there, key }) => {
    const keys = [`${key}:a`, `${key}:b`];
    const single = await there.acquire(`${key}:b`);
    await single.release();
    const lease = await here.all(keys).acquire();
    assert.equal(lease.fencingToken, lease.fencingTokens.get(`${key}:a`));
    assert.ok((lease.fencingTokens.get(`${key}:b`) ?? 0n) > single.fencingToken);
    await lease.release();
    const next = await there.all(keys).acquire();
    for (const [one, token] of lease.fencingTokens) {
      assert.ok((next.fencingTokens.get(one) ?? 0n) > token);
    }
  },

  "all: callers that name keys in different orders do not wait for each other": async (fixture) => {
    const { here, there, key } = fixture;
    const keys = Array.from({ length: 4 }, (_, index) => `${key}:${index}`);
    const inside = new Map<string, number>();
    const turns = Array.from({ length: 16 }, async (_, turn) => {
      const locks = turn % 2 === 0 ? here : there;
      const shuffled = turn % 3 === 0 ? keys : turn % 3 === 1 ? keys.toReversed() : [keys[2], keys[0]];
      await locks.all(shuffled as string[]).withLock(async (lease) => {
        for (const one of lease.keys) {
          assert.equal(inside.get(one) ?? 0, 0);
          inside.set(one, 1);
        }
        await fixture.pause(1);
        for (const one of lease.keys) {
          inside.set(one, 0);
        }
      });
    });
    await Promise.all(turns);
  },

  "all: the lease is lost if any key is lost": async ({ here, there, key }) => {
    const lease = await here.all([`${key}:a`, `${key}:b`]).acquire();
    const signalReason = aborted(lease.signal);
    const fencingToken = lease.fencingTokens.get(`${key}:b`) ?? 0n;
    await there.admin.breakLock(`${key}:b`, { fencingToken, reason: "test" });
    const reason = await signalReason;
    assert.ok(reason instanceof LeaseLostError && reason.reason === "broken" && reason.key === `${key}:b`);
    assert.equal(lease.remainingMs(), 0);
    assert.throws(() => lease.throwIfLost(), { code: "lease-lost" });
    assert.equal(await lease.release(), false);
    granted(await there.tryAcquire(`${key}:a`));
  },

  "all: keys held during the wait for the others are renewed, even with renew: false": async (fixture) => {
    const { here, there, key } = fixture;
    const blocker = await there.acquire(`${key}:b`);
    const ttlMs = 3_000; // a busy machine may delay a renewal by two thirds of this
    const waiting = later(here.all([`${key}:a`, `${key}:b`]).acquire({ ttlMs, renew: false }));
    await fixture.queued(1, `${key}:b`);
    const firstEnd = fixture.now() + ttlMs;
    await fixture.state(
      ({ remainingMs }) => fixture.now() + (remainingMs ?? 0) > firstEnd + ttlMs / 6, // longer than a reply takes
      `${key}:a`,
    );
    assert.equal(await there.tryAcquire(`${key}:a`), null);
    await fixture.pause(ttlMs / 6); // now less than the whole TTL remains of that renewal
    const previous = fixture.now();
    await blocker.release();
    const lease = await waiting;
    const expectedMs = ttlMs * 0.98 - (fixture.now() - previous); // the lease starts with the whole TTL
    assert.ok(lease.remainingMs() > expectedMs, `${lease.remainingMs()} ms left, not ${expectedMs}`);
    await aborted(lease.signal);
  },

  "all: an aborted wait leaves no residue": async ({ here, there, key, queued }) => {
    const blocker = await there.acquire(`${key}:b`);
    const controller = new AbortController();
    const waiting = later(
      here.all([`${key}:a`, `${key}:b`]).acquire({ signal: controller.signal, waitMs: Infinity }),
    );
    await queued(1, `${key}:b`);
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, { message: "enough" });
    await queued(0, `${key}:b`);
    await granted(await there.tryAcquire(`${key}:a`)).release();
    await blocker.release();
  },

  "all: inside its own withLock each of its keys rejects": async ({ here, key }) => {
    await here.all([`${key}:a`, `${key}:b`]).withLock(async () => {
      await refused(here.acquire(`${key}:b`), "self-deadlock");
      await refused(here.all([`${key}:b`, `${key}:c`]).acquire(), "self-deadlock");
    });
    const lease = await here.all([`${key}:c`]).acquire();
    await lease.release();
  },
};
