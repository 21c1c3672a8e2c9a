import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { Lease, LeaseLostError } from "holdfast";
import { expect, test } from "vitest";

import type { Driver, ExtendResult } from "../../src/driver.ts";
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

test("after an event loop blocked past the TTL throwIfLost throws before any timer runs", async () => {
  const lease = await open().acquire("k", { ttlMs });
  clock.block(endMs - 1);
  expect(() => {
    lease.throwIfLost();
  }).not.toThrow();
  clock.block(1);
  expect(lease.remainingMs()).toBe(0);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("expired"));
});

test("throwIfLost names an engine that does not reply, like the timer, whichever comes first", async () => {
  const locks = open({ extend: () => new Promise(() => undefined) });
  const asked = await locks.acquire("asked", { ttlMs });
  const { signal } = await locks.acquire("timed", { ttlMs });
  let isAborted = false;
  signal.addEventListener("abort", () => (isAborted = true));
  const cause = new Error("the engine has not replied to the renewal");
  await clock.advance(ttlMs / 2); // renewals are sent
  clock.block(endMs - ttlMs / 2);
  expect(() => {
    asked.throwIfLost();
  }).toThrow(expect.objectContaining({ reason: "engine-unreachable", cause }));
  expect(isAborted).toBe(false); // a read of `signal.aborted` would look at the clocks itself
  await clock.advance(0);
  expect(signal.reason).toMatchObject({ reason: "engine-unreachable", cause });
});

test("an expiry that the wall clock shows slightly before the monotonic clock is no suspension", async () => {
  const lease = await open().acquire("k", { ttlMs });
  clock.jumpWall(1);
  clock.block(endMs - 1);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("expired"));
});

test("a signal that is first read after the end is already aborted", async () => {
  const lease = await open().acquire("k", { ttlMs });
  clock.block(endMs);
  expect(lease.signal.aborted).toBe(true);
  expect(lease.signal.reason).toEqual(lost("expired"));
});

test("after a suspension throwIfLost throws at once, and the signal aborts within a second", async () => {
  const locks = open();
  const [checked, listened] = await Promise.all(["a", "b"].map((key) => locks.acquire(key, { ttlMs })));
  const signal = (listened as Lease).signal;
  let isAborted = false;
  signal.addEventListener("abort", () => (isAborted = true));
  clock.sleep(endMs);
  expect(checked?.remainingMs()).toBe(0);
  expect(() => checked?.throwIfLost()).toThrow(lost("suspended"));
  expect(isAborted).toBe(false);
  await clock.advance(1_000);
  expect(isAborted).toBe(true);
  expect(signal.reason).toEqual(lost("suspended"));
});

test("a lease with unanswered renewals aborts its signal before its validity ends", async () => {
  const lease = await open({ extend: () => new Promise(() => undefined) }).acquire("k", { ttlMs });
  const until = lease.validUntil;
  const { signal } = lease;
  await clock.advance(lossMs - 1);
  expect([clock.now(), until, signal.aborted, lease.remainingMs()]).toEqual([lossMs - 1, endMs, false, 3]);
  await clock.advance(1);
  expect(signal.reason).toEqual(lost("engine-unreachable"));
});

test("a lease that was declared lost before its validity ended is lost in every respect", async () => {
  const lease = await open({ extend: () => new Promise(() => undefined) }).acquire("k", { ttlMs });
  const { signal, validUntil } = lease;
  const wallAtGrant = clock.wall();
  await clock.advance(lossMs);
  expect((signal.reason as LeaseLostError).lostAt).toBeCloseTo(wallAtGrant + lossMs);
  expect([lease.validUntil, lease.remainingMs(), lease.toJSON().remainingMs]).toEqual([validUntil, 0, 0]);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("engine-unreachable"));
  expect(await settled(lease.extend())).toEqual(lost("engine-unreachable"));
  expect(await settled(lease.release())).toBe(false);
});

test("at maxHoldMs, which no other process knows, a lease is lost then and not before", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 1 });
  const { signal } = lease;
  await clock.advance(0.5);
  expect(signal.aborted).toBe(false);
  await clock.advance(0.5);
  expect(signal.reason).toEqual(lost("max-hold"));
});

test("one failing renewal loses nothing", async () => {
  let calls = 0;
  const extend: Driver["extend"] = async (request): Promise<ExtendResult> =>
    ++calls === 1 ? { outcome: "unknown", error: unreachable } : engine.extend(request);
  const lease = await open({ extend }).acquire("k", { ttlMs });
  await clock.advance(2 * ttlMs);
  expect(calls).toBeGreaterThan(2);
  expect([lease.signal.aborted, lease.remainingMs() > 0]).toEqual([false, true]);
});

test("a loss that the engine reports aborts the signal at once, and release returns false", async () => {
  const lease = await open({ extend: async () => ({ outcome: "lost", reason: "stolen" }) }).acquire("k", {
    ttlMs,
  });
  const { signal } = lease;
  await clock.advance(ttlMs / 3);
  expect(signal.reason).toEqual(lost("stolen"));
  expect([lease.remainingMs(), await lease.release(), await lease.release()]).toEqual([0, false, false]);
});

test("at maxHoldMs a lease is lost in spite of its renewals", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 10_000 });
  const { signal } = lease;
  await clock.advance(9_999);
  expect([signal.aborted, lease.remainingMs()]).toEqual([false, 1]);
  await clock.advance(1);
  expect(signal.reason).toEqual(lost("max-hold"));
  expect(lease.remainingMs()).toBe(0);
});

test("throwIfLost detects maxHoldMs before any timer runs", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 1_000 });
  clock.block(1_000);
  expect(() => {
    lease.throwIfLost();
  }).toThrow(lost("max-hold"));
});

test("validUntil is never after the end that maxHoldMs sets", async () => {
  const lease = await open().acquire("k", { ttlMs, maxHoldMs: 1_000 });
  expect(lease.validUntil - clock.now()).toBe(lease.remainingMs());
});

test("ifLost continue: the signal is not aborted, and throwIfLost still throws", async () => {
  const losses: unknown[] = [];
  const listen = (message: unknown): void => void losses.push(message);
  subscribe("holdfast:lost", listen);
  try {
    const extend = async (): Promise<ExtendResult> => ({ outcome: "lost", reason: "stolen" });
    const lease = await open({ extend }).acquire("k", { ttlMs, ifLost: "continue" });
    const { signal } = lease;
    await clock.advance(ttlMs);
    expect([signal.aborted, lease.remainingMs()]).toEqual([false, 0]);
    expect(() => {
      lease.throwIfLost();
    }).toThrow(lost("stolen"));
    expect(losses).toMatchObject([{ key: "k", reason: "stolen", fencingToken: lease.fencingToken }]);
  } finally {
    unsubscribe("holdfast:lost", listen);
  }
});

test("the loss of a run of hand-overs reaches its present holder", async () => {
  const locks = open({ extend: async () => ({ outcome: "lost", reason: "stolen" }) });
  const first = await locks.acquire("k", { ttlMs });
  const next = locks.acquire("k", { ttlMs });
  await first.release();
  const second = await next;
  expect(second.fencingToken).toBe(first.fencingToken + 1n);
  const { signal } = second;
  await clock.advance(endMs);
  expect(signal.reason).toEqual(lost("stolen"));
  expect(first.signal.aborted).toBe(false);
});
