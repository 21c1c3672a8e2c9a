import assert from "node:assert/strict";

import { WaitTimeoutError } from "../../errors.ts";
import type { LockEvent } from "../../lock-state.ts";
import { listed } from "./list.ts";
import { granted, later, refused, type Cases } from "./fixture.ts";

const ttlMs = 60_000;
/** Long enough for the few calls before the expiry, even on a slow machine. */
const shortTtlMs = 3_000;

export const latch: Cases = {
  "latch: the last count opens the latch for all waiters": async ({ here, there, key, queued }) => {
    const [own, other] = [here, there].map((locks) => locks.latch(key, { count: 3, ttlMs })) as [
      OwnLatch,
      OwnLatch,
    ];
    const waits = [own.wait({ waitMs: 20_000 }), other.wait({ waitMs: 20_000 })].map(later);
    await queued(2);
    assert.equal(await own.countDown(), 2);
    assert.equal(await other.countDown(), 1);
    await queued(2);
    assert.equal(await own.countDown(), 0);
    await Promise.all(waits);
    await queued(0);
  },

  "latch: an attempt counts once, even if other processes repeat it": async ({ here, there, key }) => {
    const [own, other] = [here, there].map((locks) => locks.latch(key, { count: 3, ttlMs })) as [
      OwnLatch,
      OwnLatch,
    ];
    assert.equal(await own.countDown({ attemptId: "one" }), 2);
    assert.equal(await own.countDown({ attemptId: "one" }), 2);
    assert.equal(await other.countDown({ attemptId: "one" }), 2);
    assert.equal(await other.countDown({ attemptId: "other" }), 1);
    assert.equal(await here.latch(key, { count: 3, ttlMs }).countDown({ attemptId: "other" }), 1);
    await refused(own.wait({ waitMs: 0 }), "wait-timeout");
    assert.equal(await own.countDown(), 0);
  },

  "latch: an open latch stays open, and no count goes below zero": async ({ here, there, key }) => {
    const own = here.latch(key, { count: 1, ttlMs });
    assert.equal(await own.countDown({ attemptId: "one" }), 0);
    const other = there.latch(key, { count: 1, ttlMs });
    assert.equal(await other.countDown(), 0);
    assert.equal(await own.countDown({ attemptId: "one" }), 0);
    await own.wait();
    await other.wait({ waitMs: 0 });
    assert.equal((await there.inspect(key)).remaining, 0);
  },

  "latch: a wait ends at its deadline, after one read, or by its signal": async ({ here, key, queued }) => {
    const own = here.latch(key, { count: 2, ttlMs });
    await refused(own.wait({ waitMs: 0 }), "wait-timeout"); // a wait may be the first call of a latch
    const error = await refused(own.wait({ waitMs: 300 }), "wait-timeout");
    assert.ok(error instanceof WaitTimeoutError);
    const abort = new AbortController();
    const reason = new Error("no more");
    const waiting = later(own.wait({ waitMs: Infinity, signal: abort.signal }));
    await queued(1);
    abort.abort(reason);
    await assert.rejects(waiting, reason);
    await queued(0);
    await assert.rejects(own.wait({ signal: abort.signal }), reason);
    assert.equal(await own.countDown(), 1);
  },

  "latch: after its expiry a former user gets an error, and a new user starts the next latch": async (
    fixture,
  ) => {
    const { here, there, key } = fixture;
    const opened = here.latch(key, { count: 1, ttlMs: shortTtlMs });
    assert.equal(await opened.countDown(), 0);
    await fixture.state(({ kind }) => kind !== "latch");
    await refused(opened.wait(), "latch-expired");
    const next = there.latch(key, { count: 2, ttlMs });
    assert.equal(await next.countDown(), 1);
    await refused(opened.wait(), "latch-expired");
    await refused(opened.countDown(), "latch-expired");
    assert.equal((await here.inspect(key)).remaining, 1);
    assert.equal(await here.latch(key, { count: 2, ttlMs }).countDown(), 0);
  },

  "latch: a waiter rejects when the latch expires": async ({ here, there, key }) => {
    const [own, other] = [here, there].map((locks) => locks.latch(key, { count: 2, ttlMs: 500 })) as [
      OwnLatch,
      OwnLatch,
    ];
    const waits = [own, other].map((each) => refused(each.wait({ waitMs: 20_000 }), "latch-expired"));
    await Promise.all(waits);
  },

  "latch: the first call sets the TTL": async ({ here, there, key, state }) => {
    assert.equal(await here.latch(key, { count: 2, ttlMs: 800 }).countDown(), 1);
    await later(there.latch(key, { count: 2, ttlMs }).wait({ waitMs: 0 })).catch(() => undefined);
    await state(({ kind }) => kind !== "latch");
  },

  "latch: another count is refused": async ({ here, there, key }) => {
    assert.equal(await here.latch(key, { count: 3, ttlMs }).countDown(), 2);
    const other = there.latch(key, { count: 2, ttlMs });
    await refused(other.countDown(), "limit-mismatch");
    await refused(other.wait(), "limit-mismatch");
    assert.equal((await here.inspect(key)).remaining, 2);
  },

  "latch: a key is one kind at a time": async ({ here, there, key, kinds, state }) => {
    const own = here.latch(key, { count: 1, ttlMs: shortTtlMs });
    const lease = await there.acquire(key, { ttlMs: 20_000 });
    await refused(own.countDown(), "kind-mismatch");
    await refused(own.wait(), "kind-mismatch");
    assert.equal(await lease.release(), true);
    if (kinds.includes("semaphore")) {
      const permit = await there.semaphore(key, { limit: 2 }).acquire();
      await refused(own.countDown(), "kind-mismatch");
      assert.equal(await permit.release(), true);
    }
    assert.equal(await own.countDown(), 0);
    await refused(there.tryAcquire(key), "kind-mismatch");
    await refused(there.acquire(key), "kind-mismatch");
    await refused(there.all([key, `${key}:free`]).tryAcquire(), "kind-mismatch");
    await refused(there.readWrite(key).read.tryAcquire(), "kind-mismatch");
    assert.equal((await here.inspect(key)).remaining, 0);
    await state(({ kind }) => kind !== "latch");
    await granted(await there.tryAcquire(key)).release();
  },

  "latch: a lease whose key became a latch is lost, and releases nothing": async (fixture) => {
    const { here, there, key } = fixture;
    const lease = await here.acquire(key, { ttlMs: 300, renew: false });
    await fixture.state(({ holders }) => holders.length === 0);
    assert.equal(await there.latch(key, { count: 2, ttlMs }).countDown(), 1);
    assert.equal(await lease.release(), false);
    assert.equal(
      await there.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" }),
      false,
    );
    assert.equal(await there.checkFence(key, lease.fencingToken), "stale");
    assert.equal((await here.inspect(key)).remaining, 1);
  },

  "latch: inspect and list report the remaining count and the waiters": async ({
    here,
    there,
    key,
    queued,
  }) => {
    const waiting = later(there.latch(key, { count: 5, ttlMs }).wait({ waitMs: 20_000 }));
    await queued(1);
    assert.equal(await here.latch(key, { count: 5, ttlMs }).countDown(), 4);
    const { kind, limit, remaining, holders, waiters, remainingMs, fencingToken } = await here.inspect(key);
    assert.deepEqual(
      { kind, limit, left: remaining, holders, fencingToken },
      { kind: "latch", limit: 5, left: 4, holders: [], fencingToken: null },
    );
    assert.deepEqual(
      waiters.map(({ position }) => position),
      [0],
    );
    assert.ok(remainingMs !== null && remainingMs > 0 && remainingMs <= ttlMs);
    assert.equal((await listed(there, key))?.remaining, 4);
    for (let count = 3; count >= 0; count -= 1) {
      assert.equal(await here.latch(key, { count: 5, ttlMs }).countDown(), count);
    }
    await waiting;
    assert.equal((await listed(there, key))?.remaining, 0);
  },

  "latch: a watch reports each count and the expiry": async ({ here, there, key }) => {
    const own = there.latch(key, { count: 2, ttlMs: shortTtlMs });
    const abort = new AbortController();
    const events = here.admin.watch(key, { signal: abort.signal })[Symbol.asyncIterator]();
    const first = await events.next();
    assert.equal((first.value as LockEvent).type, "snapshot");
    await own.countDown();
    await own.countDown();
    let event: LockEvent;
    do {
      event = (await events.next()).value as LockEvent;
    } while (event.state.remaining !== 0);
    assert.equal(event.type, "changed");
    event = (await events.next()).value as LockEvent;
    assert.deepEqual([event.type, event.state.remaining], ["gone", undefined]);
    abort.abort();
  },

  "latch: an invalid option is rejected with its name": async ({ here, key }) => {
    for (const count of [0, 1.5, 10_001]) {
      assert.throws(() => here.latch(key, { count, ttlMs }), {
        name: "RangeError",
        message: /`count`.*10000/,
      });
    }
    for (const mismatched of [99, 86_400_001]) {
      assert.throws(() => here.latch(key, { count: 1, ttlMs: mismatched }), {
        name: "RangeError",
        message: /`ttlMs`/,
      });
    }
    assert.throws(() => here.latch(key, { count: 1 } as Parameters<typeof here.latch>[1]), TypeError);
    assert.throws(() => here.latch("", { count: 1, ttlMs }), { code: "invalid-key" });
    const own = here.latch(key, { count: 1, ttlMs });
    assert.throws(() => own.countDown({ attemptId: "" }), RangeError);
    assert.throws(() => own.wait({ waitMs: -1 }), RangeError);
    assert.throws(() => own.wait({ ttlMs } as object), TypeError);
    assert.equal((await here.inspect(key)).remaining, undefined); // the call has created no latch
  },

  "latch: close rejects open waits and later calls": async ({ there, key, open, queued }) => {
    const locks = open("here");
    const own = locks.latch(key, { count: 1, ttlMs });
    const waiting = later(own.wait({ waitMs: Infinity }));
    await queued(1);
    await locks.close();
    await refused(waiting, "closed");
    await refused(own.wait(), "closed");
    await refused(own.countDown(), "closed");
    assert.equal(await there.latch(key, { count: 1, ttlMs }).countDown(), 0);
  },

  "latch: many callers of two processes count once each, and all waiters resolve": async (fixture) => {
    const { here, there, key } = fixture;
    const count = 200;
    const latches = [here, there].map((locks) => locks.latch(key, { count, ttlMs })) as [OwnLatch, OwnLatch];
    const waits = Array.from({ length: 100 }, (_, index) =>
      later((latches[index % 2] as OwnLatch).wait({ waitMs: 20_000 })),
    );
    const remaining = await Promise.all(
      Array.from({ length: 2 * count }, (_, index) =>
        (latches[index % 2] as OwnLatch).countDown({ attemptId: `attempt ${index >> 1}` }),
      ),
    );
    assert.ok(remaining.every((each) => each >= 0 && each < count));
    await Promise.all(waits);
    assert.equal((await here.inspect(key)).remaining, 0);
    await fixture.queued(0);
  },
};

type OwnLatch = ReturnType<Parameters<Cases[string]>[0]["here"]["latch"]>;
