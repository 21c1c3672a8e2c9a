import assert from "node:assert/strict";

import type { Lease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import { expectFenceState } from "./fencing.ts";
import { aborted, granted, later, refused, type Cases } from "./fixture.ts";

export const semaphore: Cases = {
  "semaphore: the permits in use never exceed the limit": async ({ here, there, key }) => {
    const [one, other] = [here.semaphore(key, { limit: 3 }), there.semaphore(key, { limit: 3 })];
    const first = granted(await one.tryAcquire({ permits: 2 }));
    assert.equal(await other.tryAcquire({ permits: 2 }), null);
    const second = granted(await other.tryAcquire());
    assert.ok(second.fencingToken > first.fencingToken);
    assert.equal(await one.tryAcquire(), null);
    await refused(one.acquire({ waitMs: 500 }), "wait-timeout");
    assert.equal(await first.release(), true);
    assert.equal(await first.release(), true);
    await granted(await other.tryAcquire({ permits: 2 })).release();
    await second.release();
  },

  "semaphore: a waiter for many permits is never skipped by waiters for few": async (fixture) => {
    const { here, there, key } = fixture;
    const [one, other] = [here.semaphore(key, { limit: 3 }), there.semaphore(key, { limit: 3 })];
    const holders = [await one.acquire(), await one.acquire()];
    const heavy = later(other.acquire({ permits: 3 }));
    await fixture.queued(1);
    assert.equal(await one.tryAcquire(), null);
    const light = later(one.acquire());
    await fixture.queued(2);
    await holders[0]?.release();
    await fixture.pause(50);
    assert.equal((await here.inspect(key)).waiterCount, 2);
    await holders[1]?.release();
    const lease = await heavy;
    await fixture.queued(1);
    await lease.release();
    await (await light).release();
  },

  "semaphore: each lease has its own expiry": async ({ here, there, key }) => {
    const own = here.semaphore(key, { limit: 2 });
    const expiring = await own.acquire({ ttlMs: 200, renew: false });
    const stays = await own.acquire({ ttlMs: 20_000 });
    const next = await there.semaphore(key, { limit: 2 }).acquire({ ttlMs: 1_000, waitMs: 8_000 });
    assert.equal(expiring.remainingMs(), 0);
    stays.throwIfLost();
    assert.equal(await own.tryAcquire(), null);
    assert.equal(await expiring.release(), false);
    assert.equal(await own.tryAcquire(), null);
    await Promise.all([stays.release(), next.release()]);
  },

  "semaphore: another limit rejects until the limit is changed for all": async (fixture) => {
    const { here, there, key } = fixture;
    const two = here.semaphore(key, { limit: 2 });
    const three = there.semaphore(key, { limit: 3 });
    const first = await two.acquire();
    await refused(three.tryAcquire(), "limit-mismatch");
    await refused(three.acquire(), "limit-mismatch");
    const second = await two.acquire();
    const waiting = later(two.acquire());
    await fixture.queued(1);
    await three.setLimit(3);
    const third = await waiting;
    await refused(two.tryAcquire(), "limit-mismatch");
    assert.equal(await three.tryAcquire(), null);
    await three.setLimit(1);
    await Promise.all([first.release(), second.release()]);
    assert.equal(await three.tryAcquire(), null);
    await third.release();
    await granted(await three.tryAcquire()).release();
  },

  "semaphore: a waiter for more than a lowered limit rejects, and blocks no other waiter": async (
    fixture,
  ) => {
    const { here, there, key } = fixture;
    const own = here.semaphore(key, { limit: 3 });
    const holder = await own.acquire({ permits: 3 });
    const heavy = later(there.semaphore(key, { limit: 3 }).acquire({ permits: 3, waitMs: 15_000 }));
    await fixture.queued(1);
    await own.setLimit(2);
    const light = later(own.acquire());
    await fixture.queued(1);
    await holder.release();
    const lease = await light;
    await refused(heavy, "limit-mismatch");
    await lease.release();
  },

  "semaphore: inspect reports permits and limit": async ({ here, key }) => {
    const own = here.semaphore(key, { limit: 5 });
    const [one, other] = [await own.acquire({ permits: 2 }), await own.acquire({ permits: 3 })];
    const state = await here.inspect(key);
    assert.deepEqual([state.kind, state.limit], ["semaphore", 5]);
    assert.deepEqual(
      state.holders.map(({ permits = 0 }) => permits).sort((a, b) => a - b),
      [2, 3],
    );
    await Promise.all([one.release(), other.release()]);
    assert.deepEqual((await here.inspect(key)).holders, []);
  },

  "semaphore: a break ends one lease and grants its permits to a waiter": async ({
    here,
    there,
    key,
    queued,
  }) => {
    const own = here.semaphore(key, { limit: 2 });
    const [one, other] = [await own.acquire(), await own.acquire()];
    const waiting = later(there.semaphore(key, { limit: 2 }).acquire());
    await queued(1);
    const signalReason = aborted(one.signal);
    assert.equal(await there.admin.breakLock(key, { fencingToken: one.fencingToken, reason: "test" }), true);
    await signalReason;
    await (await waiting).release();
    assert.equal(await other.release(), true);
  },

  "semaphore: an acquire needs 1 permit at least, and the limit at most": async ({ here, key }) => {
    const own = here.semaphore(key, { limit: 2 });
    for (const permits of [0, 3, 1.5]) {
      assert.throws(() => own.tryAcquire({ permits }), RangeError);
    }
    for (const limit of [0, 1.5, 2_000_000]) {
      assert.throws(() => here.semaphore(key, { limit }), RangeError);
      assert.throws(() => own.acquire({ limit } as object), TypeError);
    }
  },

  "semaphore: callers of two processes never exceed the limit together": async (fixture) => {
    const { here, there, key } = fixture;
    let inside = 0;
    const uses = Array.from({ length: 60 }, async (_, index) => {
      const permits = (index % 3) + 1;
      const own = (index % 2 === 0 ? here : there).semaphore(key, { limit: 4 });
      await own.withLock({ permits }, async () => {
        inside += permits;
        assert.ok(inside <= 4, `${inside} permits`);
        await fixture.pause(1);
        inside -= permits;
      });
    });
    await Promise.all(uses);
    await fixture.state(({ holders, waiterCount }) => holders.length === 0 && waiterCount === 0);
  },

  "semaphore: the fencing token of each holder is current, until it is released": async ({
    here,
    there,
    key,
  }) => {
    const first = await here.semaphore(key, { limit: 2 }).acquire();
    const second = await there.semaphore(key, { limit: 2 }).acquire();
    await expectFenceState([here, there], key, first, "current");
    await expectFenceState([here, there], key, second, "current");
    await second.release();
    await expectFenceState([here, there], key, first, "current");
    await expectFenceState([here, there], key, second, "stale");
  },

  "semaphore: a lease is handed over in its process with the next number of its grant": async (fixture) => {
    const { there, key } = fixture;
    const here = fixture.open("here", unbounded);
    const own = here.semaphore(key, { limit: 1 });
    const first = await contendedPermit(here, key);
    const atEngine = later(own.acquire());
    await fixture.queued(1);
    const waits = [later(own.acquire()), later(own.acquire())];
    await first.release();
    const second = await Promise.race(fixture.hasHandover ? waits : [atEngine]);
    assert.ok(second.fencingToken > first.fencingToken);
    if (fixture.hasHandover) {
      assert.equal(second.fencingToken, first.fencingToken + 1n);
      assert.equal(await there.checkFence(key, second.fencingToken), "unknown");
    }
    assert.equal(await here.checkFence(key, first.fencingToken), "stale");
    assert.equal(await here.checkFence(key, second.fencingToken), "current");
    assert.notEqual(await there.checkFence(key, first.fencingToken), "current");
    await second.release();
    const granted = await Promise.all([atEngine, ...waits].map((wait) => released(wait)));
    assert.equal(new Set([first.fencingToken, ...granted]).size, 4);
    await expectFenceState([here, there], key, second, "stale");
  },

  "semaphore: a run of hand-overs ends, and other processes get their turn": async (fixture) => {
    const { there, key } = fixture;
    const here = fixture.open("here", { handover: { max: 2, maxMs: 60_000 } });
    const lease = await contendedPermit(here, key);
    const served: string[] = [];
    const other = there.semaphore(key, { limit: 1 }).withLock(() => served.push("there"));
    await fixture.queued(1);
    await fixture.pause(30);
    const own = here.semaphore(key, { limit: 1 });
    const callers = Array.from({ length: 6 }, () => own.withLock(() => served.push("here")));
    await lease.release();
    await Promise.all([other, ...callers]);
    const before = served.indexOf("there");
    assert.equal(before, fixture.hasHandover ? 2 : 0);
    assert.equal(served.length, 7);
  },

  "semaphore: a lease is never handed over to a caller with another number of permits": async (fixture) => {
    const { key } = fixture;
    const here = fixture.open("here", unbounded);
    const own = here.semaphore(key, { limit: 2 });
    const held = [await own.acquire(), await own.acquire()];
    const heavy = later(own.acquire({ permits: 2 }));
    await fixture.queued(1);
    await held[0]?.release();
    await fixture.pause(30);
    const { holders } = await here.inspect(key);
    assert.deepEqual(
      holders.map(({ permits }) => permits),
      [1],
    );
    await held[1]?.release();
    await (await heavy).release();
  },

  "semaphore: a break of a lease that was handed over ends it and no other": async (fixture) => {
    const { there, key } = fixture;
    const here = fixture.open("here", unbounded);
    const own = here.semaphore(key, { limit: 1 });
    const first = await contendedPermit(here, key);
    const waits = [later(own.acquire()), later(own.acquire())];
    await first.release();
    const second = await Promise.race(waits);
    const signalReason = aborted(second.signal);
    const { fencingToken } = second;
    assert.equal(
      await there.admin.breakLock(key, { fencingToken: fencingToken + 100_000n, reason: "test" }),
      false,
    );
    assert.equal(await there.admin.breakLock(key, { fencingToken, reason: "test" }), true);
    await signalReason;
    await Promise.all(waits.map((wait) => released(wait)));
  },
};

const unbounded = { handover: { max: 1_000, maxMs: 60_000 } };

/** A lease of the only permit that may be handed over in memory, because the caller waited for another caller of its process. */
async function contendedPermit(locks: Locks, key: string): Promise<Lease> {
  const own = locks.semaphore(key, { limit: 1 });
  const first = await own.acquire();
  const second = later(own.acquire());
  await first.release();
  return second;
}

/** Waits for a lease and releases it. @returns its fencing token */
async function released(granting: Promise<Lease>): Promise<bigint> {
  const lease = await granting;
  await lease.release();
  return lease.fencingToken;
}
