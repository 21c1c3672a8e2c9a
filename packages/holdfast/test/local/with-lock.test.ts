import { createLocks, EngineError, isLockError, LeaseLostError, type Lease, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { manualClock, type ManualClock } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { Driver } from "../../src/driver.ts";
import { altered } from "../support/altered.ts";

const ttlMs = 3_000;
const unreachable = new EngineError("the engine is away", { outcome: "unknown", retryable: true });

let clock: ManualClock;
let engine: Driver;
let locks: Locks;

beforeEach(() => {
  clock = manualClock({ wall: 1_000_000 });
  engine = memory({ clock });
  locks = createLocks(engine);
});

afterEach(async () => {
  await locks.close();
  expect(clock.timers()).toBe(0);
});

/** A process at the same engine, with other replies to some calls. Its close does not close the engine. */
function hearing(changes: Partial<Driver>): Locks {
  return createLocks(altered(engine, { close: async () => undefined, ...changes }));
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => expect.unreachable(`resolved with ${String(value)}`),
    (error: unknown) => error,
  );
}

async function isFree(key: string): Promise<boolean> {
  return (await engine.inspect(key)).holders.length === 0;
}

// Results.

test("the lock is released if the work throws, synchronously or later", async () => {
  const failure = new Error("the work failed");
  for (const work of [
    (): never => {
      throw failure;
    },
    () => Promise.reject(failure),
  ]) {
    expect(await rejection(locks.withLock("k", work))).toBe(failure);
    expect(await isFree("k")).toBe(true);
  }
});

test("the work is awaited before the release", async () => {
  const seen: boolean[] = [];
  await locks.withLock("k", async () => {
    await Promise.resolve();
    seen.push(await isFree("k"));
  });
  expect([seen, await isFree("k")]).toEqual([[false], true]);
});

test("the error of the work wins over a release that fails", async () => {
  const failure = new Error("the work failed");
  const own = hearing({ release: () => Promise.reject(unreachable) });
  expect(await rejection(own.withLock("k", () => Promise.reject(failure)))).toBe(failure);
});

test("the error of the work wins over a loss, also if the work throws undefined", async () => {
  const thrown = locks.withLock("k", { ttlMs, renew: false }, async () => {
    await clock.advance(ttlMs);
    return Promise.reject(undefined as unknown as Error);
  });
  expect(await rejection(thrown)).toBeUndefined();
});

test("an unreachable engine at the release does not fail finished work", async () => {
  const own = hearing({ release: () => Promise.reject(unreachable) });
  expect(await own.withLock("k", () => 42)).toBe(42);
  expect(await own.tryWithLock("other", () => 42)).toEqual({ ran: true, value: 42 });
});

test("a loss rejects with the value of the work attached", async () => {
  const value = { charged: true };
  const error = await rejection(
    locks.withLock("k", { ttlMs, renew: false }, async () => {
      await clock.advance(ttlMs);
      return value;
    }),
  );
  expect(error).toBeInstanceOf(LeaseLostError);
  expect(error).toMatchObject({ code: "lease-lost", key: "k", reason: "expired" });
  expect((error as LeaseLostError).result).toBe(value);
});

test("a loss that only the clock shows rejects, because no timer ran while the work blocked", async () => {
  const error = await rejection(
    locks.withLock("k", { ttlMs }, () => {
      clock.block(ttlMs);
      return "done";
    }),
  );
  expect(error).toMatchObject({ code: "lease-lost", reason: "expired", result: "done" });
});

test("a loss that only the release finds rejects with the value", async () => {
  const own = hearing({ release: () => Promise.resolve(false) });
  const error = await rejection(own.withLock("k", () => "done"));
  expect(error).toMatchObject({ code: "lease-lost", reason: "stolen", result: "done" });
});

test("a loss rejects tryWithLock as well", async () => {
  const error = await rejection(
    locks.tryWithLock("k", { ttlMs }, () => {
      clock.sleep(ttlMs);
      return "done";
    }),
  );
  expect(error).toMatchObject({ code: "lease-lost", reason: "suspended", result: "done" });
});

test("with ifLost continue a loss does not reject", async () => {
  const work = (): string => {
    clock.block(ttlMs);
    return "done";
  };
  expect(await locks.withLock("k", { ttlMs, ifLost: "continue" }, work)).toBe("done");
  expect(await locks.tryWithLock("k", { ttlMs, ifLost: "continue" }, work)).toEqual({
    ran: true,
    value: "done",
  });
});

test("work that released or transferred its own lease does not reject with a loss", async () => {
  expect(await locks.withLock("a", (lease) => lease.release())).toBe(true);
  expect(await locks.withLock("b", (lease) => lease.transfer().key)).toBe("b");
  expect(await isFree("b")).toBe(false);
});

test("the work does not run if the lock was not acquired", async () => {
  await locks.withLock("k", async () => {
    const others = hearing({});
    const work = (): never => expect.unreachable();
    expect(await others.tryWithLock("k", work)).toMatchObject({ ran: false });
    expect(await rejection(others.withLock("k", { waitMs: 0 }, work))).toMatchObject({
      code: "wait-timeout",
    });
    const own = altered(engine, {
      close: async () => undefined,
      acquire: () => ({ result: Promise.reject(unreachable), cancel: () => undefined }),
    });
    expect(await rejection(createLocks(own).withLock("k", work))).toBe(unreachable);
    expect(await rejection(createLocks(own).tryWithLock("k", work))).toBe(unreachable);
  });
});

// Self-deadlocks.

async function isRefused(call: () => Promise<unknown>): Promise<boolean> {
  const asked: string[] = [];
  const before = clock.now();
  const error = await call().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect([asked, clock.now()]).toEqual([[], before]);
  return isLockError(error, "self-deadlock");
}

test("inside its own withLock every way to the same lock is refused at once", async () => {
  const lock = locks.mutex("k");
  await locks.withLock("k", async () => {
    const work = (): never => expect.unreachable();
    for (const call of [
      () => locks.acquire("k"),
      () => locks.acquire("k", { waitMs: 0 }),
      () => locks.acquire("k", { waitMs: Infinity }),
      () => locks.tryAcquire("k"),
      () => locks.withLock("k", work),
      () => locks.tryWithLock("k", work),
      () => lock.acquire(),
      () => lock.tryAcquire(),
      () => lock.withLock(work),
      () => lock.tryWithLock(work),
    ]) {
      expect(await isRefused(call)).toBe(true);
    }
  });
});

test("inside tryWithLock, and deep inside other locks, it is refused too", async () => {
  await locks.tryWithLock("a", () =>
    locks.withLock("b", async () => {
      await Promise.resolve();
      await locks.withLock("c", async () => {
        expect(await isRefused(() => locks.acquire("a"))).toBe(true);
        expect(await isRefused(() => locks.tryAcquire("b"))).toBe(true);
        const lease = await locks.acquire("d");
        expect(await lease.release()).toBe(true);
      });
    }),
  );
});

test("after a release, transfer or loss the lock can be requested again inside the work", async () => {
  await locks.withLock("k", async (lease) => {
    await lease.release();
    const again = await locks.acquire("k");
    expect(again.fencingToken > lease.fencingToken).toBe(true);
    await again.release();
  });
  await locks.withLock("k", async (lease) => {
    const adopted = await locks.adopt(lease.transfer());
    expect(await locks.tryAcquire("k")).toBeNull();
    await adopted.release();
  });
  const lostAtOnce = locks.withLock("k", { ttlMs, renew: false, ifLost: "continue" }, async () => {
    await clock.advance(ttlMs);
    await locks.withLock("k", () => "in turn");
  });
  await lostAtOnce;
});

test("a lease from acquire opens no scope: a second try finds the lock held", async () => {
  const lease = await locks.acquire("k");
  expect(await locks.tryAcquire("k")).toBeNull();
  await lease.release();
});

test("callers beside a withLock wait for it", async () => {
  let finish = (): void => undefined;
  const inside = locks.withLock("k", () => new Promise<void>((resolve) => (finish = resolve)));
  await clock.advance(0);
  const waiting = locks.acquire("k");
  finish();
  await inside;
  const lease: Lease = await waiting;
  expect(await lease.release()).toBe(true);
});

test("a call that outlives its work can acquire the lock after the end of the work", async () => {
  let later: Promise<Lease> | undefined;
  let go = (): void => undefined;
  const gate = new Promise<void>((resolve) => (go = resolve));
  await locks.withLock("k", () => {
    later = gate.then(() => locks.acquire("k"));
  });
  go();
  const lease = (await later) as Lease;
  expect(await lease.release()).toBe(true);
});
