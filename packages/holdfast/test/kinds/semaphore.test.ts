import { isLockError } from "holdfast";
import { expect, test } from "vitest";

import { clock, endMs, lost, onManualClock, open, settled, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

test("a waiter for few permits is granted at once after a waiter for many aborts", async () => {
  const own = open().semaphore("k", { limit: 3 });
  await own.acquire({ ttlMs, permits: 2 });
  const controller = new AbortController();
  const heavy = own.acquire({ permits: 2, signal: controller.signal });
  const light = own.acquire({ ttlMs });
  expect(await settled(light)).toBe("pending");
  controller.abort("enough");
  await expect(heavy).rejects.toBe("enough");
  expect(await settled(light)).toMatchObject({ key: "k" });
});

test("a waiter for few permits is granted at once after a waiter for many times out", async () => {
  const own = open().semaphore("k", { limit: 3 });
  await own.acquire({ ttlMs, permits: 2 });
  const heavy = own.acquire({ permits: 2, waitMs: 300 });
  const light = own.acquire({ ttlMs });
  expect(await settled(heavy)).toBe("pending");
  await clock.advance(299);
  expect(await settled(light)).toBe("pending");
  await clock.advance(1);
  expect(isLockError(await settled(heavy), "wait-timeout")).toBe(true);
  expect(await settled(light)).toMatchObject({ key: "k" });
});

test("a higher limit admits waiters in order, as far as permits suffice", async () => {
  const own = open().semaphore("k", { limit: 1 });
  await own.acquire({ ttlMs });
  const waits = [own.acquire({ ttlMs }), own.acquire({ ttlMs }), own.acquire({ ttlMs })];
  expect(await settled(Promise.race(waits))).toBe("pending");
  await own.setLimit(3);
  const outcomes: unknown[] = [];
  for (const wait of waits) {
    outcomes.push(await settled(wait));
  }
  expect(outcomes.map((outcome) => outcome === "pending")).toEqual([false, false, true]);
  expect((await open().inspect("k")).limit).toBe(3);
});

test("under a lower limit holders keep their permits, and no waiter is granted until permits suffice", async () => {
  const own = open().semaphore("k", { limit: 3 });
  const held = [await own.acquire({ ttlMs }), await own.acquire({ ttlMs }), await own.acquire({ ttlMs })];
  await own.setLimit(1);
  const waiting = own.acquire({ ttlMs });
  for (const lease of held.slice(1)) {
    lease.throwIfLost();
    expect(await lease.release()).toBe(true);
    expect(await settled(waiting)).toBe("pending");
  }
  await held[0]?.release();
  expect(await settled(waiting)).toMatchObject({ key: "k" });
});

test("a waiter for more than a lowered limit is refused at its turn, and the next waiter is granted", async () => {
  const [here, there] = [open(), open()];
  const own = here.semaphore("k", { limit: 3 });
  const holder = await own.acquire({ ttlMs });
  const heavy = there.semaphore("k", { limit: 3 }).acquire({ permits: 3 });
  const light = own.acquire({ ttlMs });
  expect(await settled(heavy)).toBe("pending");
  await own.setLimit(2);
  expect(await settled(heavy)).toMatchObject({ code: "limit-mismatch", key: "k" });
  expect(await settled(light)).toMatchObject({ key: "k" });
  await holder.release();
});

test("a new limit applies at once to this object, and to other objects while permits are held", async () => {
  const locks = open();
  const own = locks.semaphore("k", { limit: 1 });
  expect(() => own.acquire({ permits: 2 })).toThrow(
    new RangeError("Expected `permits` to be an integer from 1 to 1, got 2 (number)"),
  );
  await own.setLimit(2);
  const lease = await own.acquire({ ttlMs, permits: 2 });
  const other = locks.semaphore("k", { limit: 1 });
  expect(await settled(other.acquire())).toMatchObject({ code: "limit-mismatch" });
  await lease.release();
  expect(await settled(other.acquire({ ttlMs }))).toMatchObject({ key: "k" });
});

test("setLimit is refused while the key is held as another kind", async () => {
  const locks = open();
  await locks.acquire("k", { ttlMs });
  expect(await settled(locks.semaphore("k", { limit: 1 }).setLimit(2))).toMatchObject({
    code: "kind-mismatch",
  });
});

test("a refused or undelivered limit changes nothing", async () => {
  const own = open({ setLimit: () => Promise.reject(new Error("away")) }).semaphore("k", { limit: 1 });
  expect(() => own.acquire({ permits: 2 })).toThrow(RangeError);
  await expect(own.setLimit(2)).rejects.toThrow("away");
  expect(() => own.acquire({ permits: 2 })).toThrow(RangeError);
  await expect(own.setLimit(0)).rejects.toThrow(
    new RangeError("Expected `limit` to be an integer from 1 to 1000000, got 0 (number)"),
  );
});

test("close rejects waiters, and refuses every later call", async () => {
  const locks = open();
  const own = locks.semaphore("k", { limit: 1 });
  const lease = await own.acquire({ ttlMs });
  const { signal } = lease;
  const waiting = own.acquire();
  const closing = locks.close();
  expect(await settled(waiting)).toMatchObject({ code: "closed" });
  await closing;
  expect(signal.reason).toEqual(lost("released"));
  await expect(own.acquire()).rejects.toMatchObject({ code: "closed" });
  await expect(own.tryAcquire()).rejects.toMatchObject({ code: "closed" });
  await expect(own.setLimit(2)).rejects.toMatchObject({ code: "closed" });
});

test("each permit is free when it expires at the engine", async () => {
  const own = open().semaphore("k", { limit: 2 });
  const short = await own.acquire({ ttlMs: 1_000, renew: false });
  const long = await own.acquire({ ttlMs: 2_000, renew: false });
  const waits = [own.acquire({ ttlMs }), own.acquire({ ttlMs })];
  await clock.advance(990);
  expect([short.remainingMs(), await settled(Promise.race(waits))]).toEqual([0, "pending"]);
  await clock.advance(10);
  expect(await settled(Promise.race(waits))).toMatchObject({ key: "k" });
  expect(long.remainingMs()).toBeGreaterThan(0);
  expect((await open().inspect("k")).waiterCount).toBe(1);
  await clock.advance(1_000);
  expect((await open().inspect("k")).waiterCount).toBe(0);
});

test("a repeated attempt uses no further permits; with another number of permits it is another attempt", async () => {
  const own = open().semaphore("k", { limit: 3 });
  const attempt = { attemptId: "job 1", ttlMs };
  const one = await own.acquire(attempt);
  const same = await own.acquire(attempt);
  expect(same.fencingToken).toBe(one.fencingToken);
  const other = await own.acquire({ ...attempt, permits: 2 });
  expect(other.fencingToken).toBeGreaterThan(one.fencingToken);
  expect((await open().inspect("k")).holders.map(({ permits }) => permits)).toEqual(
    expect.arrayContaining([1, 2]),
  );
  expect(await one.release()).toBe(true);
  expect((await open().inspect("k")).holders.map(({ permits }) => permits)).toEqual(
    expect.arrayContaining([1, 2]),
  );
  expect(await same.release()).toBe(true);
  expect((await open().inspect("k")).holders.map(({ permits }) => permits)).toEqual([2]);
});

test("inside its own withLock a semaphore can be acquired again while permits are free", async () => {
  const own = open().semaphore("k", { limit: 2 });
  await own.withLock({ ttlMs }, async () => {
    await own.withLock({ ttlMs }, async () => {
      expect(await own.tryWithLock(() => "in")).toMatchObject({ ran: false });
    });
    expect(await own.tryWithLock(() => "in")).toEqual({ ran: true, value: "in" });
  });
});

test("a blocked event loop past the TTL ends a lease before any timer runs", async () => {
  const lease = await open().semaphore("k", { limit: 2 }).acquire({ ttlMs, permits: 2 });
  clock.block(endMs);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("expired"));
  expect(await lease.release()).toBe(false);
});

test("maxHoldMs ends a lease and leaves the others", async () => {
  const own = open().semaphore("k", { limit: 2 });
  const bounded = await own.acquire({ ttlMs, maxHoldMs: 4_000 });
  const endless = await own.acquire({ ttlMs });
  const { signal } = bounded;
  await clock.advance(4_000);
  expect(signal.reason).toEqual(lost("max-hold"));
  endless.throwIfLost();
});

test("a transferred lease keeps its permits", async () => {
  const [here, there] = [open(), open()];
  const lease = await here.semaphore("k", { limit: 3 }).acquire({ ttlMs, permits: 2 });
  const adopted = await there.adopt(lease.transfer());
  await clock.advance(2 * ttlMs);
  expect((await here.inspect("k")).holders).toMatchObject([{ permits: 2 }]);
  expect(await adopted.release()).toBe(true);
  expect(await here.semaphore("k", { limit: 3 }).tryAcquire({ ttlMs, permits: 3 })).not.toBeNull();
});

test("invalid options are refused before a request is sent", async () => {
  const locks = open();
  expect(() => locks.semaphore("k", undefined as never)).toThrow(TypeError);
  expect(() => locks.semaphore("k", {} as never)).toThrow(
    new TypeError("Expected `limit` to be an integer from 1 to 1000000, got undefined (undefined)"),
  );
  expect(() => locks.semaphore("k", { limit: 1, permits: 1 } as never)).toThrow(/Unknown option `permits`/);
  expect(() => locks.semaphore("k", { limit: 1, attemptId: "x" })).toThrow(TypeError);
  expect(() => locks.semaphore("k", { limit: 1 }).tryAcquire({ waitMs: 5 } as never)).toThrow(TypeError);
});
