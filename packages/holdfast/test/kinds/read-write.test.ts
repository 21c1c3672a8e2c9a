import { isLockError, type Lease, type WriteLease } from "holdfast";
import { describe, expect, test } from "vitest";

import type { ExtendResult } from "../../src/driver.ts";
import {
  clock,
  endMs,
  engine,
  lost,
  onManualClock,
  open,
  settled,
  ttlMs,
  unreachable,
} from "../support/lease-fixture.ts";

onManualClock();

describe("the queue of a read-write lock", () => {
  test("readers after a writer that aborts are granted at once", async () => {
    const { read, write } = open().readWrite("k");
    const reader = await read.acquire({ ttlMs });
    const controller = new AbortController();
    const writing = write.acquire({ signal: controller.signal });
    const reading = read.acquire({ ttlMs });
    expect(await settled(reading)).toBe("pending");
    controller.abort("enough");
    await expect(writing).rejects.toBe("enough");
    expect(await settled(reading)).toMatchObject({ key: "k" });
    reader.throwIfLost();
  });

  test("readers after a writer that times out are granted at once", async () => {
    const { read, write } = open().readWrite("k");
    await read.acquire({ ttlMs });
    const writing = write.acquire({ waitMs: 200 });
    const reading = read.acquire({ ttlMs });
    expect(await settled(writing)).toBe("pending");
    await clock.advance(200);
    expect(isLockError(await settled(writing), "wait-timeout")).toBe(true);
    expect(await settled(reading)).toMatchObject({ key: "k" });
  });

  test("readers after a writer whose process closes are granted at once", async () => {
    const [here, there] = [open(), open()];
    await here.readWrite("k").read.acquire({ ttlMs });
    const writing = there.readWrite("k").write.acquire();
    const reading = here.readWrite("k").read.acquire({ ttlMs });
    expect(await settled(writing)).toBe("pending");
    const closing = there.close();
    expect(isLockError(await settled(writing), "closed")).toBe(true);
    expect(await settled(reading)).toMatchObject({ key: "k" });
    await closing;
  });

  test("waitMs 0 sends one request: the error names the holder, and no waiter is queued", async () => {
    const { read, write } = open().readWrite("k");
    await read.acquire({ ttlMs, reason: "report" });
    const error = await settled(write.acquire({ waitMs: 0 }));
    expect(error).toMatchObject({ code: "wait-timeout", holder: { mode: "read", reason: "report" } });
    expect((await open().inspect("k")).waiterCount).toBe(0);
  });
});

describe("a downgrade", () => {
  test("of a writer that was released or lost is refused", async () => {
    const { write } = open().readWrite("k");
    const released = await write.acquire({ ttlMs });
    await released.release();
    expect(await settled(released.downgrade())).toEqual(lost("released"));
    const late = await write.acquire({ ttlMs, renew: false });
    clock.block(endMs);
    expect(await settled(late.downgrade())).toEqual(lost("expired"));
  });

  test("happens once: the writer lease ends, and its release call releases the reader", async () => {
    const { read, write } = open().readWrite("k");
    const writer = await write.acquire({ ttlMs });
    const reader = await writer.downgrade();
    expect(await settled(writer.downgrade())).toEqual(lost("released"));
    expect(() => {
      writer.throwIfLost();
    }).toThrow(lost("released"));
    expect([writer.signal.aborted, writer.remainingMs()]).toEqual([false, 0]);
    expect(await read.tryAcquire({ ttlMs })).not.toBeNull();
    expect(await writer.release()).toBe(true);
    expect(await reader.release()).toBe(true);
    expect(reader.remainingMs()).toBe(0);
  });

  test("of an orphaned writer is refused", async () => {
    const writer = await open().readWrite("k").write.acquire({ ttlMs });
    writer.orphan();
    expect(await settled(writer.downgrade())).toMatchObject({
      code: "unsupported",
      message: 'The lease of "k" is orphaned; it cannot be downgraded',
    });
    expect(await writer.release()).toBe(true);
  });

  test("during a renewal: the renewal extends the reader", async () => {
    let answer: (extension: ExtendResult) => void = () => undefined;
    const firstReply = new Promise<ExtendResult>((resolve) => (answer = resolve));
    let renewals = 0;
    const locks = open({
      extend: (request) => {
        renewals += 1;
        return renewals === 1 ? firstReply : engine.extend(request);
      },
    });
    const writer = await locks.readWrite("k").write.acquire({ ttlMs });
    await clock.advance(ttlMs / 3 + 10);
    expect(renewals).toBe(1);
    const reader = await writer.downgrade();
    const before = reader.validUntil;
    const { now, wall } = { now: clock.now(), wall: clock.wall() };
    answer({ outcome: "extended", validity: { until: now + endMs, untilWall: wall + endMs } });
    await clock.advance(0);
    expect(reader.validUntil).toBeGreaterThan(before);
    await clock.advance(3 * ttlMs);
    expect(reader.remainingMs()).toBeGreaterThan(0);
    expect(writer.signal.aborted).toBe(false);
    await reader.release();
  });

  test("during a renewal that finds the lock lost: the reader is lost", async () => {
    let answer: (extension: ExtendResult) => void = () => undefined;
    const locks = open({ extend: () => new Promise<ExtendResult>((resolve) => (answer = resolve)) });
    const writer = await locks.readWrite("k").write.acquire({ ttlMs });
    await clock.advance(ttlMs / 3 + 10);
    const reader = await writer.downgrade();
    const { signal } = reader;
    answer({ outcome: "lost", reason: "broken" });
    await clock.advance(0);
    expect(signal.reason).toEqual(lost("broken"));
    expect(await reader.release()).toBe(false);
    expect(await writer.release()).toBe(false);
  });

  test("with an unreachable engine still returns a reader, because a writer may read", async () => {
    const locks = open({ downgrade: () => Promise.reject(unreachable) });
    const writer = await locks.readWrite("k").write.acquire({ ttlMs });
    const reader = await writer.downgrade();
    expect(reader.remainingMs()).toBeGreaterThan(0);
    expect(await open().readWrite("k").read.tryAcquire()).toBeNull(); // the engine has not received the downgrade
    expect(await reader.release()).toBe(true);
    expect(await open().readWrite("k").write.tryAcquire({ ttlMs })).not.toBeNull();
  });

  test("rejects if the engine replies with a loss, and the reader is lost", async () => {
    const locks = open({ downgrade: async () => false });
    const writer = await locks.readWrite("k").write.acquire({ ttlMs });
    expect(await settled(writer.downgrade())).toEqual(lost("expired"));
    expect(await writer.release()).toBe(false);
  });

  test("before a loss: the reader's signal is aborted, and the writer's is not", async () => {
    const locks = open();
    const writer = await locks.readWrite("k").write.acquire({ ttlMs });
    const { signal } = writer;
    const reader = await writer.downgrade();
    const readerSignal = reader.signal;
    await open().admin.breakLock("k", { fencingToken: reader.fencingToken, reason: "test" });
    expect([readerSignal.aborted, signal.aborted]).toEqual([true, false]);
    expect(await writer.release()).toBe(false);
  });

  test("inside a withLock: the loss of the reader is reported with its own reason", async () => {
    const locks = open();
    const working = locks.readWrite("k").write.withLock({ ttlMs }, async (lease) => {
      const reader = await lease.downgrade();
      await open().admin.breakLock("k", { fencingToken: reader.fencingToken, reason: "test" });
      return "done";
    });
    const error = await settled(working);
    expect(error).toMatchObject({ code: "lease-lost", result: "done", reason: "broken" });
  });

  test("inside a withLock: a new writer is refused, because it would wait for itself", async () => {
    const { write } = open().readWrite("k");
    await write.withLock({ ttlMs }, async (lease) => {
      await lease.downgrade();
      expect(await settled(write.acquire({ waitMs: 100 }))).toMatchObject({ code: "self-deadlock" });
    });
  });

  test("does not restart maxHoldMs", async () => {
    const writer = await open().readWrite("k").write.acquire({ ttlMs, maxHoldMs: 5_000 });
    await clock.advance(4_000);
    const reader = await writer.downgrade();
    const { signal } = reader;
    await clock.advance(999);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.reason).toEqual(lost("max-hold"));
  });
});

describe("a transferred or unrenewed share", () => {
  test("a transferred and adopted reader stays a reader, and its release frees no other reader", async () => {
    const [here, there] = [open(), open()];
    const one = await here.readWrite("k").read.acquire({ ttlMs });
    const other = await here.readWrite("k").read.acquire({ ttlMs });
    const adopted = await there.adopt(one.transfer());
    expect([one.remainingMs(), await one.release()]).toEqual([0, false]);
    expect(adopted.fencingToken).toBe(one.fencingToken);
    await clock.advance(3 * ttlMs);
    expect(adopted.remainingMs()).toBeGreaterThan(0);
    expect(await adopted.release()).toBe(true);
    other.throwIfLost();
    expect(await there.readWrite("k").write.tryAcquire()).toBeNull();
    await other.release();
    expect(await there.readWrite("k").write.tryAcquire({ ttlMs })).not.toBeNull();
  });

  test("an expired transferred lease is not adopted", async () => {
    const reader = await open().readWrite("k").read.acquire({ ttlMs });
    const serialized = reader.transfer();
    await clock.advance(ttlMs);
    expect(await settled(open().adopt(serialized))).toEqual(lost("expired"));
  });

  test("the orphan of one reader expires alone", async () => {
    const { read, write } = open().readWrite("k");
    const [orphaned, stays] = [await read.acquire({ ttlMs }), await read.acquire({ ttlMs })];
    orphaned.orphan();
    await clock.advance(ttlMs);
    expect([orphaned.remainingMs(), stays.remainingMs() > 0]).toEqual([0, true]);
    expect((await open().inspect("k")).holders).toHaveLength(1);
    expect(await write.tryAcquire()).toBeNull();
  });

  test("the late release of an unrenewed reader ends no other share", async () => {
    const { read } = open().readWrite("k");
    const short = await read.acquire({ ttlMs: 500, renew: false });
    const long: Lease = await read.acquire({ ttlMs });
    await clock.advance(500);
    expect(await short.release()).toBe(false);
    expect(await open().readWrite("k").write.tryAcquire()).toBeNull();
    long.throwIfLost();
  });

  test("a writer with ifLost continue learns of its loss only from throwIfLost", async () => {
    const locks = open();
    const outcome = await locks
      .readWrite("k")
      .write.withLock({ ttlMs, ifLost: "continue" }, async (lease: WriteLease) => {
        const { signal } = lease;
        await open().admin.breakLock("k", { fencingToken: lease.fencingToken, reason: "test" });
        expect(signal.aborted).toBe(false);
        expect(() => {
          lease.throwIfLost();
        }).toThrow(lost("broken"));
        return "done";
      });
    expect(outcome).toBe("done");
  });
});

test("another kind is refused by name while the lock is held or waited for, and accepted once it is free", async () => {
  const locks = open();
  const reader = await locks.readWrite("k").read.acquire({ ttlMs });
  expect(await settled(locks.acquire("k"))).toMatchObject({
    code: "kind-mismatch",
    message: expect.stringContaining("read-write"),
  });
  expect(await settled(locks.semaphore("k", { limit: 2 }).acquire())).toMatchObject({
    code: "kind-mismatch",
  });
  await reader.release();
  const mutex = await locks.acquire("k", { ttlMs });
  expect(mutex.fencingToken).toBeGreaterThan(reader.fencingToken);
  expect(await settled(locks.readWrite("k").read.tryAcquire())).toMatchObject({
    code: "kind-mismatch",
    message: expect.stringContaining("mutex"),
  });
});
