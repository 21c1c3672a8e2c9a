import type { Lease } from "holdfast";
import { describe, expect, test, vi } from "vitest";

import {
  clock,
  engine,
  lost,
  onManualClock,
  open,
  openCounted,
  settled,
  ttlMs,
  unreachable,
} from "../support/lease-fixture.ts";

onManualClock();

const attempt = { attemptId: "job 1", ttlMs } as const;

const holders = async (): Promise<number> => (await engine.inspect("k")).holders.length;

describe("tries of one attempt at once", () => {
  test("share one request, which the abort of one caller does not cancel", async () => {
    const { locks, acquire } = openCounted();
    const abort = new AbortController();
    const one = locks.tryAcquire("k", { ...attempt, signal: abort.signal }).catch((error: unknown) => error);
    const two = locks.tryAcquire("k", attempt);
    abort.abort("aborted");
    expect(await settled(one)).toBe("aborted");
    const lease = await two;
    expect([acquire.mock.calls.length, await holders()]).toEqual([1, 1]);
    expect(await lease?.release()).toBe(true);
    expect(await holders()).toBe(0);
  });

  test("leave no grant after all callers have aborted", async () => {
    const abort = new AbortController();
    const tried = open()
      .tryAcquire("k", { ...attempt, signal: abort.signal })
      .catch((error: unknown) => error);
    abort.abort("aborted");
    expect(await settled(tried)).toBe("aborted");
    await clock.advance(1);
    expect(await holders()).toBe(0);
  });

  test("fail together, and the next try sends a new request", async () => {
    const acquire = vi.fn(engine.acquire.bind(engine));
    acquire.mockImplementationOnce(() => ({ result: Promise.reject(unreachable), cancel: () => undefined }));
    const locks = open({ acquire });
    const tries = [1, 2].map(() => locks.tryAcquire("k", attempt).catch((error: unknown) => error));
    expect(await Promise.all(tries)).toEqual([unreachable, unreachable]);
    expect(await (await locks.tryAcquire("k", attempt))?.release()).toBe(true);
    expect(acquire).toHaveBeenCalledTimes(2);
  });
});

describe("a repeat while the first holds", () => {
  test("has the options of the first, and survives the release of the first", async () => {
    const locks = open();
    const first = await locks.acquire("k", { ...attempt, owner: "first", maxHoldMs: 10_000 });
    const repeat = await locks.acquire("k", { ...attempt, owner: "second", maxHoldMs: 60_000 });
    expect([repeat.owner, repeat.validUntil]).toEqual(["first", first.validUntil]);
    expect(await first.release()).toBe(true);
    expect(first.remainingMs()).toBe(0);
    expect(() => first.throwIfLost()).toThrow("lost");
    repeat.throwIfLost();
    await clock.advance(9_999);
    repeat.throwIfLost();
    await clock.advance(1);
    expect(repeat.signal.reason).toEqual(lost("max-hold"));
    expect(await repeat.release()).toBe(false);
  });

  test("a loss reaches every owner", async () => {
    const locks = open();
    const leases = [await locks.acquire("k", attempt), await locks.acquire("k", attempt)];
    const signals = leases.map(({ signal }) => signal);
    const [{ fencingToken }] = leases as [Lease];
    await open().admin.breakLock("k", { fencingToken, reason: "stuck" });
    await clock.advance(1);
    expect(signals.map(({ reason }: AbortSignal) => reason as unknown)).toEqual([
      lost("broken"),
      lost("broken"),
    ]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([false, false]);
  });

  test("after a loss a repeat is a new acquisition", async () => {
    const locks = open();
    const first = await locks.acquire("k", { ...attempt, renew: false });
    await clock.advance(ttlMs);
    const repeat = await locks.acquire("k", attempt);
    expect(repeat.fencingToken).toBeGreaterThan(first.fencingToken);
    expect(await first.release()).toBe(false);
    repeat.throwIfLost();
    expect(await repeat.release()).toBe(true);
  });

  test("after a release call a repeat is a new acquisition, also before the release is answered", async () => {
    const locks = open();
    const first = await locks.acquire("k", attempt);
    const released = first.release();
    const repeat = await locks.acquire("k", attempt);
    expect([await released, repeat.fencingToken > first.fencingToken]).toEqual([true, true]);
    expect(await repeat.release()).toBe(true);
  });

  test("one of several owners cannot transfer the lease, and a repeat does not get a transferred lease", async () => {
    const locks = open();
    const first = await locks.acquire("k", attempt);
    const repeat = await locks.acquire("k", attempt);
    expect(() => first.transfer()).toThrow("is held 2 times in this process");
    await first.release();
    const given = repeat.transfer();
    expect(await locks.tryAcquire("k", attempt)).toBeNull();
    const adopted = await open().adopt(given);
    expect(adopted.fencingToken).toBe(first.fencingToken);
    expect(await adopted.release()).toBe(true);
  });

  test("an orphaned lease expires, and a repeat does not get it", async () => {
    const locks = open();
    const first = await locks.acquire("k", attempt);
    first.orphan();
    expect(await locks.tryAcquire("k", attempt)).toBeNull();
    await clock.advance(ttlMs);
    expect(await (await locks.tryAcquire("k", attempt))?.release()).toBe(true);
  });

  test("the release of the last owner hands the lease to the next caller in the local queue", async () => {
    const { locks, acquire } = openCounted();
    const [first, repeat] = [await locks.acquire("k", attempt), await locks.acquire("k", attempt)];
    const next = locks.acquire("k", { ttlMs });
    await clock.advance(10);
    await first.release();
    expect(await settled(next)).toBe("pending");
    await repeat.release();
    expect((await next).fencingToken).toBeGreaterThan(first.fencingToken);
    expect(acquire.mock.calls.length).toBeLessThanOrEqual(2);
    await (await next).release();
  });

  test("a writer of a named attempt cannot be downgraded", async () => {
    const writer = await open().readWrite("k").write.acquire(attempt);
    await expect(writer.downgrade()).rejects.toMatchObject({ code: "unsupported" });
    await writer.release();
  });
});

test("the same attemptId in another mode, with other keys or in another `Locks` is another attempt", async () => {
  const locks = open();
  const one = await locks.readWrite("k").read.acquire(attempt);
  expect(await locks.readWrite("k").write.tryAcquire(attempt)).toBeNull();
  const other = await open().readWrite("k").read.acquire(attempt);
  expect(other.fencingToken).toBeGreaterThan(one.fencingToken);
  const all = await locks.all(["a", "b"]).acquire(attempt);
  expect(await locks.all(["a", "c"]).tryAcquire(attempt)).toBeNull();
  const again = await locks.all(["b", "a"]).acquire(attempt);
  expect(again.fencingTokens).toEqual(all.fencingTokens);
  expect(await all.release()).toBe(true);
  expect(await open().tryAcquire("a")).toBeNull();
  expect(await again.release()).toBe(true);
  expect(await (await open().tryAcquire("a"))?.release()).toBe(true);
  await Promise.all([one.release(), other.release()]);
});
