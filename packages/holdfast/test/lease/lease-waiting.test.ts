import { isLockError, type Lease, type Locks } from "holdfast";
import { expect, test } from "vitest";

import type { AcquireRequest, AcquireResult, Driver, ExtendRequest } from "../../src/driver.ts";
import { contended } from "../../src/testing/conformance/fixture.ts";
import { clock, engine, onManualClock, open, settled, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

/** The default time for hand-overs in memory. */
const handoverMs = 100;

test("waitMs 0 sends one request and reports the holder", async () => {
  const locks = open({}, { owner: "me" });
  await locks.acquire("k", { ttlMs });
  const refused = await settled(open().acquire("k", { waitMs: 0 }));
  expect(refused).toMatchObject({ code: "wait-timeout", holder: { owner: "me" } });
});

test("callers beyond maxWaiters are refused at once, and the waiters are not disturbed", async () => {
  const locks = open({}, { maxWaiters: 2 });
  const lease = await locks.acquire("k", { ttlMs });
  const waiting = [locks.acquire("k"), locks.acquire("k")];
  const refused = await settled(locks.acquire("k"));
  expect(isLockError(refused, "too-many-waiters") && refused.retryable).toBe(true);
  const other = await locks.acquire("another key");
  expect(other.key).toBe("another key");
  await lease.release();
  const second = (await settled(waiting[0] as Promise<Lease>)) as Lease;
  const waits = locks.acquire("k");
  await second.release();
  expect(await settled(waiting[1] as Promise<Lease>)).toMatchObject({ key: "k" });
  expect(await settled(waits)).toBe("pending");
  waits.catch(() => undefined); // rejected by close
});

test("a caller that aborts while its grant is under way leaves the lock free", async () => {
  let grant: (() => void) | undefined;
  const acquire: Driver["acquire"] = (request) => {
    const pending = engine.acquire(request);
    const result = new Promise<void>((resolve) => (grant = resolve)).then(() => pending.result);
    return { result, cancel: () => undefined }; // too late to cancel
  };
  const locks = open({ acquire });
  const caller = new AbortController();
  for (const call of [
    () => locks.acquire("k", { signal: caller.signal }),
    () => locks.tryAcquire("k", { signal: caller.signal }),
  ]) {
    const aborted = call();
    await clock.advance(0);
    caller.abort("changed my mind");
    grant?.();
    expect(await settled(aborted)).toBe("changed my mind");
    expect((await engine.inspect("k")).holders).toEqual([]);
  }
});

test("an abort in the local queue takes effect at once, and the next waiter gets the turn", async () => {
  const locks = open();
  const lease = await locks.acquire("k", { ttlMs });
  const caller = new AbortController();
  const aborted = locks.acquire("k", { signal: caller.signal });
  const next = locks.acquire("k");
  caller.abort();
  expect(await settled(aborted)).toBe(caller.signal.reason);
  await lease.release();
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("after the head of the local queue aborts at the engine, the next waiter gets the turn", async () => {
  const theirs = await open().acquire("k", { ttlMs });
  const locks = open();
  const caller = new AbortController();
  const head = locks.acquire("k", { signal: caller.signal });
  const next = locks.acquire("k");
  await clock.advance(0);
  caller.abort();
  expect(await settled(head)).toBe(caller.signal.reason);
  expect((await engine.inspect("k")).waiterCount).toBe(1);
  await theirs.release();
  expect(await settled(next)).toMatchObject({ key: "k" });
});

test("a run of hand-overs ends after handover.max, and another process gets the lock", async () => {
  const [ours, theirs] = [open({}, { handover: { max: 2, maxMs: 60_000 } }), open()];
  const served: string[] = [];
  const use = async (locks: Locks, name: string): Promise<void> => {
    const lease = await locks.acquire("k", { ttlMs });
    served.push(name);
    await clock.advance(0);
    await lease.release();
  };
  const held = await contended(ours, "k", { ttlMs });
  const all = [use(theirs, "theirs"), ...["1", "2", "3", "4"].map((name) => use(ours, name))];
  await held.release();
  await Promise.all(all);
  expect(served).toEqual(["1", "2", "theirs", "3", "4"]);
});

test("a run of hand-overs ends after handover.maxMs", async () => {
  const [ours, theirs] = [open({}, { handover: { max: 100, maxMs: 50 } }), open()];
  const held = await contended(ours, "k", { ttlMs });
  const others = theirs.acquire("k", { ttlMs });
  const [first, second] = [ours.acquire("k", { ttlMs }), ours.acquire("k", { ttlMs })];
  await clock.advance(49);
  await held.release();
  const handed = (await settled(first)) as Lease;
  await clock.advance(1);
  await handed.release();
  expect(await settled(second)).toBe("pending");
  await (await others).release();
  expect(await settled(second)).toMatchObject({ key: "k" });
});

test("a request repeats its first arguments, however many callers join the local queue while it waits", async () => {
  const theirs = await open().acquire("k", { ttlMs });
  const requests: AcquireRequest[] = [];
  const acquire: Driver["acquire"] = (request) => {
    requests.push(request);
    return engine.acquire(request);
  };
  const ours = open({ acquire });
  const waiting = Array.from({ length: 4 }, () => ours.acquire("k", { ttlMs }));
  expect(requests.map(({ fencingCount }) => fencingCount)).toEqual([1]);
  await theirs.release();
  const { fencingToken } = (await settled(waiting[0] as Promise<Lease>)) as Lease;
  expect(await open().checkFence("k", fencingToken)).toBe("current");
  for (const lease of waiting) {
    await (await lease).release();
  }
});

test("a renewal carries metadata only once callers wait in the local queue", async () => {
  const reports: ExtendRequest["info"][] = [];
  const locks = open({
    extend: (request) => {
      reports.push(request.info);
      return engine.extend(request);
    },
  });
  const lease = await locks.acquire("k", { ttlMs });
  await clock.advance(ttlMs);
  expect(reports.length).toBeGreaterThan(1);
  expect(reports.every((words) => words === undefined)).toBe(true);
  const { fencingToken } = lease;
  const leaving = new AbortController();
  const waits = [1, 2].map(() => locks.acquire("k", { signal: leaving.signal }));
  expect(await settled(Promise.race(waits))).toBe("pending");
  await clock.advance(ttlMs / 2);
  const reported = { fencingToken, isLast: true };
  expect(reports.at(-1)).toEqual({ ...reported, localWaiters: 2, localWaitMs: expect.any(Number) });
  const { localWaitMs } = reports.at(-1) ?? {};
  expect(localWaitMs).toBeGreaterThan(ttlMs / 6); // by the renewal, not by the time of the reader
  expect(localWaitMs).toBeLessThan(ttlMs / 2);
  expect(await engine.inspect("k")).toMatchObject({
    waiterCount: 2,
    holders: [{ localWaiters: 2, localWaitMs }],
    oldestWaitMs: localWaitMs,
  });
  leaving.abort();
  await clock.advance(ttlMs / 2);
  expect(reports.at(-1)).toEqual({ ...reported, localWaiters: 0 });
  expect((await engine.inspect("k")).waiterCount).toBe(0);
  await lease.release();
  const next = await locks.acquire("k", { ttlMs });
  await next.extend();
  expect(reports.at(-1)).toBeUndefined();
});

test("a hand-over of a confirmed claim sends no extension at once", async () => {
  let extensions = 0;
  const extend: Driver["extend"] = (request) => {
    extensions += 1;
    return engine.extend(request);
  };
  const asClaim = (acquired: AcquireResult): AcquireResult =>
    acquired.outcome === "granted" ? { ...acquired, grant: { ...acquired.grant, isClaim: true } } : acquired;
  const acquire: Driver["acquire"] = (request) => {
    const { cancel, result } = engine.acquire(request);
    return { cancel, result: result.then(asClaim) };
  };
  const requeue: Driver["requeue"] = (previous, request) => {
    const { cancel, result, released } = engine.requeue(previous, request);
    return { cancel, released, result: result.then(asClaim) };
  };
  const locks = open({ acquire, requeue, extend });
  const lone = (await settled(locks.acquire("k", { ttlMs }))) as Lease;
  const [claimed, waiting] = [locks.acquire("k", { ttlMs }), locks.acquire("k", { ttlMs })];
  await lone.release();
  const first = (await settled(claimed)) as Lease;
  await clock.advance(50);
  const sentBefore = extensions;
  await first.release();
  const second = (await settled(waiting)) as Lease;
  expect(second.fencingToken).toBe(first.fencingToken + 1n);
  await clock.advance(handoverMs);
  expect(extensions).toBe(sentBefore);
  await second.release();
});

test("a lease that is handed over no more is reported to the engine once, and its next waiter asks the engine", async () => {
  const reports: ExtendRequest["info"][] = [];
  const locks = open({
    extend: (request) => {
      reports.push(request.info);
      return engine.extend(request);
    },
  });
  const there = open();
  const lease = await contended(locks, "k", { ttlMs });
  const { fencingToken } = lease;
  const next = locks.acquire("k", { ttlMs });
  await clock.advance(handoverMs);
  expect(await there.checkFence("k", fencingToken)).toBe("unknown");
  await clock.advance(1);
  expect(reports).toEqual([{ fencingToken, isLast: true, localWaiters: 1, localWaitMs: handoverMs + 1 }]);
  expect(await there.checkFence("k", fencingToken)).toBe("current");
  expect(await there.checkFence("k", fencingToken + 1n)).toBe("stale");
  await clock.advance(ttlMs / 4);
  expect(reports.length).toBe(1);
  await lease.release();
  const second = await next;
  expect(second.fencingToken).toBeGreaterThan(fencingToken + 1n);
  expect(await there.checkFence("k", fencingToken)).toBe("stale");
  await second.release();
});
