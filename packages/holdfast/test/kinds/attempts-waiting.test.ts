import { describe, expect, test, vi } from "vitest";

import {
  clock,
  engine,
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
const waiters = async (): Promise<number> => (await engine.inspect("k")).waiterCount;

describe("a repeat while the first waits", () => {
  test("sends no second request, and all repeats get the same grant at once", async () => {
    const { locks, acquire } = openCounted();
    const other = await open().acquire("k", { ttlMs });
    const requests = [1, 2, 3].map(() => locks.acquire("k", attempt));
    await clock.advance(10);
    expect([acquire.mock.calls.length, await waiters()]).toEqual([1, 1]);
    await other.release();
    const leases = await Promise.all(requests);
    expect(new Set(leases.map(({ fencingToken }) => fencingToken)).size).toBe(1);
    const answers = [];
    for (const lease of leases) {
      expect(await holders()).toBe(1);
      answers.push(await lease.release());
    }
    expect([answers, await holders()]).toEqual([[true, true, true], 0]);
  });

  test("all are granted before the first of them can release", async () => {
    const locks = open();
    const other = await open().acquire("k", { ttlMs });
    const requests = [1, 2, 3].map(async () => {
      const lease = await locks.acquire("k", attempt);
      await lease.release();
      return lease.fencingToken;
    });
    await other.release();
    expect(new Set(await Promise.all(requests)).size).toBe(1);
    expect(await holders()).toBe(0);
  });

  test("each repeat has its own waitMs; after the first times out, the next waits at its own time of arrival", async () => {
    const locks = open();
    const holder = await open().acquire("k", { ttlMs, maxHoldMs: Infinity });
    const first = locks.acquire("k", { ...attempt, waitMs: 100 }).catch((error: unknown) => error);
    const second = locks.acquire("k", { ...attempt, waitMs: 60_000 });
    const third = locks.acquire("k", { ...attempt, waitMs: 50 }).catch((error: unknown) => error);
    await clock.advance(10);
    const later = open().acquire("k", { ttlMs, waitMs: 60_000 });
    await clock.advance(45);
    expect(await settled(third)).toMatchObject({ code: "wait-timeout" });
    await clock.advance(100);
    expect(await settled(first)).toMatchObject({ code: "wait-timeout" });
    expect(await waiters()).toBe(2);
    await holder.release();
    const lease = await second;
    expect(await settled(later)).toBe("pending");
    await lease.release();
    await (await later).release();
  });

  test.each([
    { waitMs: 101, expected: { code: "wait-timeout" } },
    { waitMs: 400, expected: unreachable }, // the reply to the first request is too old to prove that the lock is held
  ])("a repeat starts its own request too late for a reply: $waitMs ms", async ({ waitMs, expected }) => {
    const acquire = vi.fn(engine.acquire.bind(engine));
    const locks = open({ acquire });
    const holder = await open().acquire("k", { ttlMs, maxHoldMs: Infinity });
    const first = locks.acquire("k", { ...attempt, waitMs: 100 }).catch((error: unknown) => error);
    await clock.advance(0);
    acquire.mockImplementation(({ deadline }) => ({
      result: new Promise((_, reject) => {
        clock.setTimer(() => reject(unreachable), Number(deadline) - clock.now());
      }),
      cancel: () => undefined,
    }));
    const second = locks.acquire("k", { ...attempt, waitMs }).catch((error: unknown) => error);
    await clock.advance(100);
    expect(await settled(first)).toMatchObject({ code: "wait-timeout" });
    await clock.advance(waitMs - 100);
    expect(await settled(second)).toMatchObject(expected);
    expect(acquire).toHaveBeenCalledTimes(2);
    await holder.release();
  });

  test("an aborted repeat leaves the others waiting, and the last abort cancels the request", async () => {
    const locks = open();
    const holder = await open().acquire("k", { ttlMs });
    const [one, two] = [new AbortController(), new AbortController()];
    const requests = [one, two].map(({ signal }) =>
      locks.acquire("k", { ...attempt, signal }).catch((error: unknown) => error),
    );
    await clock.advance(10);
    one.abort("first");
    expect(await settled(requests[0] as Promise<unknown>)).toBe("first");
    await clock.advance(10);
    expect(await waiters()).toBe(1);
    two.abort("second");
    expect(await settled(requests[1] as Promise<unknown>)).toBe("second");
    expect(await waiters()).toBe(0);
    await holder.release();
    expect(await holders()).toBe(0);
  });

  test("a try finds the lock held", async () => {
    const locks = open();
    const holder = await open().acquire("k", { ttlMs });
    const waiting = locks.acquire("k", attempt);
    await clock.advance(10);
    expect(await locks.tryAcquire("k", attempt)).toBeNull();
    await expect(locks.acquire("k", { ...attempt, waitMs: 0 })).rejects.toMatchObject({
      code: "wait-timeout",
    });
    await holder.release();
    await (await waiting).release();
  });

  test("a repeat is refused if maxWaiters repeats of the attempt already wait", async () => {
    const locks = open({}, { maxWaiters: 2 });
    const holder = await open().acquire("k", { ttlMs });
    const waiting = [1, 2, 3].map(() => locks.acquire("k", attempt));
    await expect(locks.acquire("k", attempt)).rejects.toMatchObject({
      code: "too-many-waiters",
      retryable: true,
    });
    await holder.release();
    await Promise.all(waiting.map(async (lease) => (await lease).release()));
  });

  test("close rejects all repeats", async () => {
    const locks = open();
    const holder = await open().acquire("k", { ttlMs });
    const requests = [1, 2].map(() => locks.acquire("k", attempt).catch((error: unknown) => error));
    await clock.advance(10);
    await locks.close();
    expect(await Promise.all(requests)).toMatchObject([{ code: "closed" }, { code: "closed" }]);
    await holder.release();
    expect(await holders()).toBe(0);
  });
});
