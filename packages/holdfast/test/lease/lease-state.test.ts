import { isLockError, type Lease } from "holdfast";
import { expect, test } from "vitest";

import type { Driver, ExtendResult } from "../../src/driver.ts";
import { contended } from "../../src/testing/conformance/fixture.ts";
import {
  clock,
  endMs,
  engine,
  lossMs,
  lost,
  onManualClock,
  open,
  settled,
  ttlMs,
  unreachable,
} from "../support/lease-fixture.ts";

onManualClock();

// Release, extend, orphan, transfer.

test("an unanswered release rejects, as does a second call, and dispose does not reject", async () => {
  const lease = await open({ release: () => Promise.reject(unreachable) }).acquire("k", { ttlMs });
  await expect(lease.release()).rejects.toBe(unreachable);
  await expect(lease.release()).rejects.toBe(unreachable);
  await lease[Symbol.asyncDispose]();
});

test("after a release the lease has ended, and its signal is not aborted", async () => {
  const lease = await open().acquire("k", { ttlMs });
  const { signal } = lease;
  expect(await lease.release()).toBe(true);
  expect([lease.remainingMs(), signal.aborted]).toEqual([0, false]);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("released"));
  await expect(lease.extend()).rejects.toEqual(lost("released"));
  await clock.advance(2 * ttlMs);
  expect(signal.aborted).toBe(false);
});

test("the release of a lost lease still reaches the engine, which may still hold the grant", async () => {
  const released: string[] = [];
  const locks = open({
    release: async (key) => {
      released.push(key);
      return true;
    },
  });
  const lease = await locks.acquire("k", { ttlMs });
  clock.block(endMs);
  expect(await lease.release()).toBe(false);
  expect(released).toEqual(["k"]);
});

test("extend moves validUntil and postpones the next renewal", async () => {
  let renewals = 0;
  const extend: Driver["extend"] = (request) => {
    renewals += 1;
    return engine.extend(request);
  };
  const lease = await open({ extend }).acquire("k", { ttlMs });
  await clock.advance(500);
  await lease.extend(60_000);
  expect(lease.validUntil).toBe(500 + 60_000 - 602);
  await clock.advance(30_000);
  expect(renewals).toBe(1);
});

test("an unanswered extension rejects and loses nothing, and a refused extension is a loss", async () => {
  const answers: ExtendResult[] = [
    { outcome: "unknown", error: unreachable },
    { outcome: "lost", reason: "broken" },
  ];
  const locks = open({ extend: async () => answers.shift() as ExtendResult });
  const lease = await locks.acquire("k", { ttlMs, renew: false });
  await expect(lease.extend()).rejects.toBe(unreachable);
  expect(lease.remainingMs()).toBe(endMs);
  await expect(lease.extend()).rejects.toEqual(lost("broken"));
  expect(lease.signal.aborted).toBe(true);
});

test("an orphan is no longer renewed, and its lock is free when its TTL has passed", async () => {
  const lease = await open().acquire("k", { ttlMs });
  await clock.advance(1_500);
  lease.orphan();
  const next = open().acquire("k", { waitMs: Infinity });
  await clock.advance(lease.validUntil - clock.now() + 31);
  expect(await settled(next)).toBe("pending");
  await clock.advance(1);
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("a transferred lease throws, is not renewed, and its release returns false", async () => {
  let renewals = 0;
  const extend: Driver["extend"] = (request) => {
    renewals += 1;
    return engine.extend(request);
  };
  const lease = await open({ extend }).acquire("k", { ttlMs, owner: "first" });
  const { signal } = lease;
  const serialized = JSON.parse(JSON.stringify(lease.transfer())) as ReturnType<Lease["transfer"]>;
  expect(lease.remainingMs()).toBe(0);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("released"));
  expect(() => lease.transfer()).toThrow(lost("released"));
  expect([await lease.release(), await lease.release()]).toEqual([false, false]);
  const adopted = await open().adopt(serialized);
  expect(adopted).toMatchObject({ key: "k", owner: "first", fencingToken: lease.fencingToken });
  await clock.advance(10_000);
  expect([renewals, signal.aborted, adopted.remainingMs() > 0]).toEqual([0, false, true]);
  expect(await adopted.release()).toBe(true);
});

test("a transferred lease is not handed to the next local waiter", async () => {
  const locks = open();
  const lease = await contended(locks, "k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  const serialized = lease.transfer();
  await lease.release();
  expect(await settled(next)).toBe("pending");
  const adopted = await locks.adopt(serialized);
  await adopted.release();
  expect(((await settled(next)) as Lease).fencingToken > adopted.fencingToken + 1n).toBe(true);
});

test("an expired lease cannot be adopted, and an adopted lease is renewed only with renew", async () => {
  const locks = open();
  const serialized = (await locks.acquire("k", { ttlMs })).transfer();
  const adopted = await locks.adopt(serialized, { renew: false });
  const { signal } = adopted;
  await clock.advance(ttlMs);
  expect(signal.reason).toEqual(lost("expired"));
  await expect(locks.adopt(serialized)).rejects.toEqual(lost("expired"));
});

test("the JSON of a lease has no secret", async () => {
  const lease = await open({}, { owner: "me" }).acquire("k", { ttlMs });
  const json = JSON.stringify(lease);
  expect(JSON.parse(json)).toEqual({
    key: "k",
    keys: ["k"],
    owner: "me",
    fencingToken: lease.fencingToken.toString(),
    remainingMs: endMs,
  });
  expect(json).not.toContain(lease.transfer().token);
});

// Close.

test("close ends within closeTimeoutMs if the engine hangs", async () => {
  const never = new Promise<never>(() => undefined);
  const locks = open({ release: () => never }, { closeTimeoutMs: 700 });
  const lease = await locks.acquire("k", { ttlMs });
  const waiting = locks.acquire("k");
  let isClosed = false;
  const closing = locks.close().then(() => (isClosed = true));
  expect(isLockError(await settled(waiting), "closed")).toBe(true);
  await clock.advance(699);
  expect(isClosed).toBe(false);
  await clock.advance(1);
  expect(isClosed).toBe(true);
  await closing;
  expect(lease.remainingMs()).toBe(0);
});

test("close waits only for its releases, and a second close waits for the same", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { ttlMs });
  const closing = locks.close();
  expect(locks.close()).toBe(closing);
  expect(await settled(closing)).toBeUndefined();
  expect(await lease.release()).toBe(true);
  expect(isLockError(await settled(locks.acquire("k")), "closed")).toBe(true);
});

test("a failed release does not fail close", async () => {
  const locks = open({ release: () => Promise.reject(unreachable) });
  await locks.acquire("k", { ttlMs });
  expect(await settled(locks.close())).toBeUndefined();
});

test("a grant that arrives after close is released", async () => {
  const grants: (() => void)[] = [];
  const acquire: Driver["acquire"] = (request) => {
    const pending = engine.acquire(request);
    const result = new Promise<void>((resolve) => grants.push(resolve)).then(() => pending.result);
    return { result, cancel: () => undefined };
  };
  const locks = open({ acquire });
  const calls = [locks.tryAcquire("a"), locks.acquire("b")];
  const closing = locks.close();
  for (const grant of grants) {
    grant();
  }
  await closing;
  for (const call of calls) {
    expect(isLockError(await settled(call), "closed")).toBe(true);
  }
  expect((await open().admin.list()).locks).toEqual([]);
});

test("an orphan also learns of its end after close, and then no timer is left", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { ttlMs });
  const { signal } = lease;
  lease.orphan();
  await locks.close();
  await clock.advance(lossMs - 1);
  expect([lease.remainingMs(), signal.aborted]).toEqual([3, false]);
  await clock.advance(1);
  expect(signal.reason).toEqual(lost("expired"));
  await clock.advance(ttlMs); // the engine holds the grant for the drift as well
  expect(clock.timers()).toBe(0);
});

test("an adoption during close is refused, changes no holder, and leaves no timer", async () => {
  const serialized = (await open().acquire("k", { ttlMs })).transfer();
  let answer!: () => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const verify: Driver["verify"] = (key, token) => answered.then(() => engine.verify(key, token));
  const locks = open({ verify });
  const adoption = locks.adopt(serialized);
  await locks.close();
  const before = clock.timers();
  answer();
  expect(isLockError(await settled(adoption), "closed")).toBe(true);
  expect(clock.timers()).toBe(before);
  expect(await (await open().adopt(serialized)).release()).toBe(true);
});
