import assert from "node:assert/strict";

import { expectFenceState } from "./fencing.ts";
import { listed } from "./list.ts";
import { aborted, granted, later, refused, type Cases } from "./fixture.ts";

export const readWrite: Cases = {
  "read-write: there are many readers or one writer": async ({ here, there, key }) => {
    const one = granted(await here.readWrite(key).read.tryAcquire());
    const other = granted(await there.readWrite(key).read.tryAcquire());
    assert.ok(other.fencingToken > one.fencingToken);
    assert.equal(await there.readWrite(key).write.tryAcquire(), null);
    assert.equal(await one.release(), true);
    assert.equal(await there.readWrite(key).write.tryAcquire(), null);
    assert.equal(await other.release(), true);
    const writer = granted(await there.readWrite(key).write.tryAcquire());
    assert.equal(await here.readWrite(key).read.tryAcquire(), null);
    await refused(here.readWrite(key).write.acquire({ waitMs: 500 }), "wait-timeout");
    assert.equal(await writer.release(), true);
  },

  "read-write: a waiting writer is never skipped, and readers at the head are granted together": async (
    fixture,
  ) => {
    const { here, there, key } = fixture;
    const first = await here.readWrite(key).read.acquire();
    const writing = later(there.readWrite(key).write.acquire());
    await fixture.queued(1);
    const reading = [here, there].map((locks) => later(locks.readWrite(key).read.acquire()));
    await fixture.queued(3);
    assert.equal(await here.readWrite(key).read.tryAcquire(), null);
    await first.release();
    const writer = await writing;
    await fixture.queued(2);
    await writer.release();
    const readers = await Promise.all(reading);
    assert.ok(readers.every(({ fencingToken }) => fencingToken > writer.fencingToken));
    await Promise.all(readers.map((reader) => reader.release()));
  },

  "read-write: the expiry of one reader ends no other reader": async ({ here, there, key, state }) => {
    const expiring = await here.readWrite(key).read.acquire({ ttlMs: 200, renew: false });
    const remaining = await there.readWrite(key).read.acquire();
    await aborted(expiring.signal);
    await state(({ holders }) => holders.length === 1);
    assert.equal(await here.readWrite(key).write.tryAcquire(), null);
    remaining.throwIfLost();
    assert.equal(await expiring.release(), false);
    await remaining.release();
    // A quorum delays votes after a grant that expired without release, because clocks may differ.
    await (await here.readWrite(key).write.acquire({ waitMs: 10_000 })).release();
  },

  "read-write: a downgrade admits readers and no writer": async ({ here, there, key, queued }) => {
    const writer = await here.readWrite(key).write.acquire();
    const reading = later(there.readWrite(key).read.acquire());
    await queued(1);
    const reader = await writer.downgrade();
    assert.equal(reader.fencingToken, writer.fencingToken);
    assert.equal(writer.remainingMs(), 0);
    assert.equal(writer.signal.aborted, false);
    const other = await reading;
    assert.equal(await there.readWrite(key).write.tryAcquire(), null);
    assert.equal(await other.release(), true);
    assert.equal(await there.readWrite(key).write.tryAcquire(), null);
    assert.equal(await writer.release(), true);
    assert.equal(reader.remainingMs(), 0);
    await granted(await there.readWrite(key).write.tryAcquire()).release();
  },

  "read-write: an upgrade rejects, because it would wait for itself": async ({ here, key }) => {
    const { read, write } = here.readWrite(key);
    await read.withLock(() => refused(write.acquire(), "self-deadlock"));
    await write.withLock(async (lease) => {
      await refused(read.acquire(), "self-deadlock");
      await lease.downgrade();
    });
    await write.withLock(() => undefined);
  },

  "read-write: inspect reports readers and writers": async ({ here, there, key, queued }) => {
    const reader = await here.readWrite(key).read.acquire({ reason: "report" });
    const writing = later(there.readWrite(key).write.acquire());
    await queued(1);
    const state = await here.inspect(key);
    assert.deepEqual([state.kind, state.limit, state.waiterCount], ["read-write", Infinity, 1]);
    assert.deepEqual(
      state.holders.map(({ mode, reason, fencingToken }) => [mode, reason, fencingToken]),
      [["read", "report", reader.fencingToken]],
    );
    assert.equal((await listed(here, key))?.kind, "read-write");
    await reader.release();
    const writer = await writing;
    assert.equal((await here.inspect(key)).holders[0]?.mode, "write");
    await writer.release();
  },

  "read-write: a break ends one reader": async ({ here, there, key }) => {
    const one = await here.readWrite(key).read.acquire();
    const other = await here.readWrite(key).read.acquire();
    const signalReason = aborted(one.signal);
    assert.equal(await there.admin.breakLock(key, { fencingToken: one.fencingToken, reason: "test" }), true);
    await signalReason;
    other.throwIfLost();
    assert.equal(await other.release(), true);
    await granted(await there.readWrite(key).write.tryAcquire()).release();
  },

  "read-write: a repeat of a named attempt shares the grant": async ({ here, there, key }) => {
    const attempt = { attemptId: "order 555" };
    const one = await here.readWrite(key).read.acquire(attempt);
    const other = await here.readWrite(key).read.acquire(attempt);
    assert.equal(other.fencingToken, one.fencingToken);
    assert.equal((await here.inspect(key)).holders.length, 1);
    await one.release();
    assert.equal(await there.readWrite(key).write.tryAcquire(), null);
    await other.release();
    await granted(await there.readWrite(key).write.tryAcquire()).release();
  },

  "read-write: a mutex is another kind, and rejects either way": async ({ here, there, key }) => {
    const reader = await here.readWrite(key).read.acquire();
    await refused(there.tryAcquire(key), "kind-mismatch");
    await refused(there.acquire(key), "kind-mismatch");
    reader.throwIfLost();
    await reader.release();
    const holder = await here.acquire(key);
    await refused(there.readWrite(key).write.tryAcquire(), "kind-mismatch");
    await refused(there.readWrite(key).read.acquire(), "kind-mismatch");
    assert.equal(await holder.release(), true);
  },

  "read-write: readers and writers of two processes never overlap": async (fixture) => {
    const { here, there, key } = fixture;
    let readers = 0;
    let writers = 0;
    const work = (mode: "read" | "write") => async (): Promise<void> => {
      readers += mode === "read" ? 1 : 0;
      writers += mode === "write" ? 1 : 0;
      assert.ok(writers === 0 || (writers === 1 && readers === 0), `${writers} writers, ${readers} readers`);
      await fixture.pause(1);
      readers -= mode === "read" ? 1 : 0;
      writers -= mode === "write" ? 1 : 0;
    };
    const uses = Array.from({ length: 60 }, (_, index) => {
      const mode = index % 4 === 0 ? "write" : "read";
      const { read, write } = (index % 2 === 0 ? here : there).readWrite(key);
      return mode === "write" ? write.withLock(work(mode)) : read.withLock(work(mode));
    });
    await Promise.all(uses);
    await fixture.state(({ holders, waiterCount }) => holders.length === 0 && waiterCount === 0);
  },

  "read-write: the fencing token of each holder is current, until it is released": async ({
    here,
    there,
    key,
  }) => {
    const writer = await here.readWrite(key).write.acquire();
    await expectFenceState([here, there], key, writer, "current");
    const reader = await writer.downgrade();
    const second = await there.readWrite(key).read.acquire();
    await expectFenceState([here, there], key, reader, "current");
    await expectFenceState([here, there], key, second, "current");
    await reader.release();
    await expectFenceState([here, there], key, reader, "stale");
    await expectFenceState([here, there], key, second, "current");
    await second.release();
    const last = await here.readWrite(key).read.acquire();
    await expectFenceState([here, there], key, second, "stale");
    await expectFenceState([here, there], key, last, "current");
  },
};
