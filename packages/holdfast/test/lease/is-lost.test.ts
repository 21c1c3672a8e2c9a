import { createLocks, isLockError, type AnyLockError, type Lease, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { afterEach, expect, test } from "vitest";

const ttlMs = 100;
let opened: Locks[] = [];

afterEach(async () => {
  await Promise.all(opened.map((locks) => locks.close()));
  opened = [];
});

function open(): Locks {
  const locks = createLocks(memory());
  opened.push(locks);
  return locks;
}

/** Blocks the event loop for longer than the TTL, so that no timer reports the loss. */
function blockForTtl(): void {
  const end = performance.now() + 2 * ttlMs;
  while (performance.now() < end);
}

const kinds: Readonly<Record<string, (locks: Locks) => Promise<Lease>>> = {
  "a mutex": (locks) => locks.acquire("k", { ttlMs, renew: false }),
  "several keys": (locks) => locks.all(["a", "b"]).acquire({ ttlMs, renew: false }),
  "a reentrant lock": (locks) => locks.reentrant("k").acquire({ ttlMs, renew: false }),
  "an attempt": (locks) => locks.acquire("k", { ttlMs, renew: false, attemptId: "one" }),
  "a reader": (locks) => locks.readWrite("k").read.acquire({ ttlMs, renew: false }),
};

test.each(Object.entries(kinds))("%s: isLost and signal.aborted need no timer", async (_, acquire) => {
  const lease = await acquire(open());
  const { signal } = lease;
  let aborts = 0;
  signal.addEventListener("abort", () => (aborts += 1));
  expect([lease.isLost, signal.aborted, lease.signal.aborted]).toEqual([false, false, false]);
  expect(() => signal.throwIfAborted()).not.toThrow();
  blockForTtl();
  expect(signal.aborted).toBe(true);
  expect(() => signal.throwIfAborted()).toThrow(/is lost: expired/);
  expect(signal.reason).toMatchObject({ code: "lease-lost", reason: "expired" });
  expect(lease.isLost).toBe(true);
  expect(aborts).toBe(1);
  expect(AbortSignal.any([signal]).aborted).toBe(true);
});

test.each(Object.entries(kinds))("%s: isLost is true exactly when throwIfLost throws", async (_, acquire) => {
  const lost = await acquire(open());
  expect(lost.isLost).toBe(false);
  lost.throwIfLost();
  blockForTtl();
  expect(lost.isLost).toBe(true);
  expect(() => lost.throwIfLost()).toThrow(/is lost/);
  const released = await acquire(open());
  expect(await released.release()).toBe(true);
  expect(released.isLost).toBe(true);
  expect(() => released.throwIfLost()).toThrow(/released/);
  expect(released.signal.aborted).toBe(false);
});

test("a signal that only its lease reads is aborted at a loss that throwIfLost finds", async () => {
  const lease = await open().acquire("k", { ttlMs, renew: false });
  const { signal } = lease;
  blockForTtl();
  expect(() => lease.throwIfLost()).toThrow(/is lost/);
  expect(signal.aborted).toBe(true);
});

test("tryWithLock and once name the holder", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { owner: "billing" });
  const holder = { owner: "billing", fencingToken: lease.fencingToken };
  expect(await locks.tryWithLock("k", () => 1)).toMatchObject({ ran: false, holder });
  expect(await locks.mutex("k").tryWithLock(() => 1)).toMatchObject({ ran: false, holder });
  expect(await locks.all(["a", "k"]).tryWithLock(() => 1)).toMatchObject({ ran: false, holder });
  expect(await locks.reentrant("k").tryWithLock(() => 1)).toMatchObject({ ran: false, holder });
  expect(await locks.once("k", { keepMs: 1_000 }, () => 1)).toMatchObject({ ran: false, holder });
  expect(await lease.release()).toBe(true);
  expect(await locks.tryWithLock("k", () => 1)).toEqual({ ran: true, value: 1 });
});

test("the code of an error narrows its type", async () => {
  const locks = open();
  await locks.acquire("k", { owner: "billing" });
  const error: unknown = await locks.acquire("k", { waitMs: 0 }).catch((failure: unknown) => failure);
  expect(isLockError(error) && explain(error)).toBe("held by billing");
});

function explain(error: AnyLockError): string {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other codes have no members of their own
  switch (error.code) {
    case "wait-timeout":
      return `held by ${error.holder?.owner}`;
    case "lease-lost":
      return `lost: ${error.reason}, ${error.workEnded}`;
    case "quorum-not-reached":
      return `${error.votes.length} votes`;
    case "engine-unavailable":
    case "replicas-not-reached":
      return error.outcome;
    default:
      return error.message;
  }
}

test("each call that returns a promise rejects an invalid key", async () => {
  const locks = open();
  const key = "x".repeat(600);
  const calls = [
    locks.acquire(key),
    locks.tryAcquire(key),
    locks.withLock(key, () => 1),
    locks.tryWithLock(key, () => 1),
    locks.once(key, { keepMs: 1_000 }, () => 1),
    locks.inspect(key),
    locks.checkFence(key, 1n),
    locks.admin.breakLock(key, { fencingToken: 1n, reason: "test" }),
    locks.admin.audit({ key }),
    locks.admin.processes({ key }),
  ];
  for (const [index, call] of calls.entries()) {
    await expect(call, String(index)).rejects.toMatchObject({ code: "invalid-key" });
  }
});
