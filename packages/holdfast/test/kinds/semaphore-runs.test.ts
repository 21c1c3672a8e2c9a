import type { AcquireOptions, Lease, Locks, Semaphore } from "holdfast";
import { expect, test } from "vitest";

import type { AcquireRequest, Driver } from "../../src/driver.ts";
import { later } from "../../src/testing/conformance/fixture.ts";
import { clock, endMs, engine, onManualClock, open, settled, ttlMs } from "../support/lease-fixture.ts";

// Hand-overs of semaphore leases inside a process.

const endless = { handover: { max: 1_000, maxMs: 3_600_000 } };

onManualClock();

/** Holds every permit by grants with many fencing tokens, without waiters. */
async function blocks(own: Semaphore, count: number): Promise<Lease[]> {
  const first = Array.from({ length: count }, () => own.acquire({ ttlMs }));
  const second = Array.from({ length: 2 * count }, () => own.acquire({ ttlMs }));
  await Promise.all((await Promise.all(first)).map((lease) => lease.release()));
  const leases = await Promise.all(second.slice(0, count));
  await Promise.all(leases.map((lease) => lease.release()));
  return Promise.all(second.slice(count));
}

/** A caller that may wait until the test ends. */
function waits(own: Semaphore, options: AcquireOptions = {}): Promise<Lease> {
  return later(own.acquire({ ttlMs, ...options }));
}

function numbersOf(leases: readonly Lease[]): bigint[] {
  return leases.map(({ fencingToken }) => fencingToken);
}

/** The requests of the process to the engine, in order. */
function asking(): { readonly requests: AcquireRequest[]; readonly changes: Partial<Driver> } {
  const requests: AcquireRequest[] = [];
  const requeue: Driver["requeue"] = (given, request) => {
    requests.push(request);
    return engine.requeue(given, request);
  };
  const acquire: Driver["acquire"] = (request) => {
    requests.push(request);
    return engine.acquire(request);
  };
  return { requests, changes: { acquire, requeue } };
}

test("every lease has its own fencing token, and a handed-over lease has the next of its grant", async () => {
  const own = open({}, endless).semaphore("k", { limit: 2 });
  const held = await blocks(own, 2);
  const atEngine = waits(own);
  const next = [waits(own), waits(own)];
  await held[1]?.release();
  await held[0]?.release();
  const [one, other] = numbersOf(held) as [bigint, bigint];
  expect(numbersOf(await Promise.all(next))).toEqual([other + 1n, one + 1n]);
  expect(await settled(atEngine)).toBe("pending");
  await (await next[0])?.release();
  expect(((await settled(atEngine)) as Lease).fencingToken).toBeGreaterThan(other + 1n);
});

test("a lease is not handed to a caller that needs another number of permits", async () => {
  const locks = open({}, endless);
  const own = locks.semaphore("k", { limit: 2 });
  const [one, other] = await blocks(own, 2);
  const heavy = own.acquire({ ttlMs, permits: 2 });
  await one?.release();
  expect(await settled(heavy)).toBe("pending");
  await other?.release();
  expect(await settled(heavy)).toMatchObject({ key: "k" });
});

test("after the last hand-over of its run a lease is released to other processes", async () => {
  const bounded = open({}, { handover: { max: 2, maxMs: 60_000 } }).semaphore("k", { limit: 1 });
  let [lease] = await blocks(bounded, 1);
  const served: string[] = [];
  const serve = async (who: string, granting: Promise<Lease>): Promise<void> => {
    lease = await granting;
    served.push(who);
  };
  void serve("there", open().semaphore("k", { limit: 1 }).acquire({ ttlMs }));
  await clock.advance(1);
  for (let caller = 0; caller < 5; caller += 1) {
    void serve("here", bounded.acquire({ ttlMs }));
  }
  for (let turn = 0; turn < 6; turn += 1) {
    await lease?.release();
    await clock.advance(1);
  }
  expect(served.indexOf("there")).toBeLessThanOrEqual(2);
  expect(served).toHaveLength(6);
});

test("handover.maxMs ends a run as well", async () => {
  const own = open({}, { handover: { max: 1_000, maxMs: 100 } }).semaphore("k", { limit: 1 });
  const [held] = await blocks(own, 1);
  const atEngine = waits(own);
  const behind = waits(own);
  await clock.advance(100);
  await held?.release();
  expect(await settled(atEngine)).toMatchObject({ key: "k" });
  expect(await settled(behind)).toBe("pending");
});

test("without hand-over every caller queues at the engine, in order of arrival", async () => {
  const { requests, changes } = asking();
  const own = open(changes, { handover: false }).semaphore("k", { limit: 1 });
  const held = await own.acquire({ ttlMs });
  const waiting = [waits(own), waits(own), waits(own)];
  expect(requests.map(({ fencingCount }) => fencingCount)).toEqual([1, 1, 1, 1]);
  await held.release();
  expect(await settled(waiting[0] as Promise<Lease>)).toMatchObject({ key: "k" });
  expect(await settled(waiting[1] as Promise<Lease>)).toBe("pending");
});

test("after a local waiter times out or aborts, the next gets the lease", async () => {
  const own = open({}, endless).semaphore("k", { limit: 1 });
  const [held] = await blocks(own, 1);
  const atEngine = waits(own);
  const late = waits(own, { waitMs: 100 });
  const controller = new AbortController();
  const aborted = waits(own, { signal: controller.signal });
  const last = waits(own);
  expect(await settled(late)).toBe("pending");
  controller.abort("enough");
  expect(await settled(aborted)).toBe("enough");
  await clock.advance(100);
  expect(await settled(late)).toMatchObject({ code: "wait-timeout", position: 1 });
  await held?.release();
  expect(await settled(last)).toMatchObject({ fencingToken: (held?.fencingToken ?? 0n) + 1n });
  expect(await settled(atEngine)).toBe("pending");
});

test("a lost lease is not handed over", async () => {
  const locks = open({}, endless);
  const own = locks.semaphore("k", { limit: 1 });
  const [held] = await blocks(own, 1);
  const atEngine = waits(own);
  const behind = waits(own);
  await clock.advance(0);
  clock.block(ttlMs);
  expect(await held?.release()).toBe(false);
  const lease = (await settled(atEngine)) as Lease;
  expect(lease.remainingMs()).toBe(endMs);
  expect(await settled(behind)).toBe("pending");
});

test("a break ends only the handed-over lease, and a waiter gets the other permits", async () => {
  const [here, there] = [open({}, endless), open()];
  const own = here.semaphore("k", { limit: 2 });
  const [one, other] = (await blocks(own, 2)) as [Lease, Lease];
  const atEngine = waits(own);
  const next = waits(own);
  await one.release();
  const { fencingToken, signal } = await next;
  expect(await here.admin.breakLock("k", { fencingToken: one.fencingToken, reason: "test" })).toBe(false);
  expect(signal.aborted).toBe(false);
  expect(await there.admin.breakLock("k", { fencingToken, reason: "test" })).toBe(true);
  expect(signal.reason).toMatchObject({ code: "lease-lost", reason: "broken" });
  other.throwIfLost();
  expect(await settled(atEngine)).toMatchObject({ key: "k" });
});

test("close rejects local waiters, and releases handed-over leases", async () => {
  const locks = open({}, endless);
  const own = locks.semaphore("k", { limit: 1 });
  const [held] = await blocks(own, 1);
  const waiting = [waits(own), waits(own), waits(own)];
  await held?.release();
  expect(await settled(waiting[1] as Promise<Lease>)).toMatchObject({ key: "k" });
  const closing = locks.close();
  for (const wait of [waiting[0], waiting[2]]) {
    expect(await settled(wait as Promise<Lease>)).toMatchObject({ code: "closed" });
  }
  await closing;
  expect((await engine.inspect("k")).holders).toEqual([]);
});

test("a lone caller reserves one fencing token, and a caller that waits for its own process reserves many", async () => {
  const { requests, changes } = asking();
  const own = open(changes).semaphore("k", { limit: 2 });
  const leases = [await own.acquire({ ttlMs }), await own.acquire({ ttlMs })];
  const waiting = waits(own);
  expect(await settled(waiting)).toBe("pending");
  expect(requests.map(({ fencingCount }) => fencingCount)).toEqual([1, 1, 17]);
  await leases[0]?.release();
});

test("a local waiter uses the limit that applies at its turn", async () => {
  const [here, there] = [open({}, { handover: { max: 0, maxMs: 0 } }), open()];
  const own = here.semaphore("k", { limit: 1 });
  const held = await own.acquire({ ttlMs });
  const waiting = [waits(own), waits(own), waits(own)];
  expect(await settled(waiting[0] as Promise<Lease>)).toBe("pending");
  await there.semaphore("k", { limit: 1 }).setLimit(3);
  expect(await settled(waiting[1] as Promise<Lease>)).toMatchObject({ key: "k" });
  expect(await settled(waiting[2] as Promise<Lease>)).toBe("pending");
  await held.release();
  expect(await settled(waiting[2] as Promise<Lease>)).toMatchObject({ key: "k" });
});

test("a local waiter for more permits than the new limit is refused", async () => {
  const [here, there] = [open(), open()];
  const own = here.semaphore("k", { limit: 3 });
  const held = await own.acquire({ ttlMs, permits: 3 });
  const waiting = [own.acquire({ ttlMs, permits: 3 }), own.acquire({ ttlMs, permits: 3 })];
  expect(await settled(waiting[1] as Promise<Lease>)).toBe("pending");
  await there.semaphore("k", { limit: 3 }).setLimit(2);
  await held.release();
  for (const wait of waiting) {
    expect(await settled(wait)).toMatchObject({ code: "limit-mismatch" });
  }
});

test("a new caller sends the present limit", async () => {
  const [here, there] = [open(), open()];
  const own = here.semaphore("k", { limit: 2 });
  await own.acquire({ ttlMs });
  await there.semaphore("k", { limit: 2 }).setLimit(3);
  expect(await settled(waits(own))).toMatchObject({ code: "limit-mismatch" });
});

test("a local waiter after callers with a wrong limit is refused too", async () => {
  const [here, there] = [open(), open()];
  await there.semaphore("k", { limit: 3 }).acquire({ ttlMs });
  const own = here.semaphore("k", { limit: 2 });
  const waiting = [own.acquire(), own.acquire(), own.acquire(), own.acquire()];
  for (const wait of waiting) {
    expect(await settled(wait)).toMatchObject({ code: "limit-mismatch" });
  }
});

test("a lease that is released for a refused request goes to waiters for fewer permits", async () => {
  const [heavy, other, light] = [open(), open(), open()].map((locks) => locks.semaphore("k", { limit: 4 }));
  const held = await heavy?.acquire({ ttlMs, permits: 2 });
  const beside = await other?.acquire({ ttlMs, permits: 2 });
  const refused = [1, 2].map(() => heavy?.acquire({ ttlMs, permits: 2 }) as Promise<Lease>);
  const waiting = light?.acquire({ ttlMs }) as Promise<Lease>;
  const errors = Promise.allSettled(refused);
  await clock.advance(1);
  await Promise.all([other?.setLimit(1), beside?.release(), held?.release()]); // in one turn of the event loop
  const refusal = { status: "rejected", reason: expect.objectContaining({ code: "limit-mismatch" }) };
  expect(await errors).toEqual([refusal, refusal]);
  expect(await settled(waiting)).toMatchObject({ key: "k" });
});

test("inspect lists each holder with its fencing token, and counts the local waiters as one", async () => {
  const [here, there] = [open({}, endless), open()];
  const own = here.semaphore("k", { limit: 2 });
  const [one, other] = (await blocks(own, 2)) as [Lease, Lease];
  const waiting = Array.from({ length: 4 }, () => waits(own));
  await one.release();
  const next = await waiting[1];
  expect(next?.fencingToken).toBe(one.fencingToken + 1n);
  await expectState(here, [next, other], 3);
  const state = await there.inspect("k"); // before the next renewal
  expect(state.holders.map(({ fencingToken }) => fencingToken)).not.toContain(next?.fencingToken);
  expect([state.holders.length, state.waiterCount]).toEqual([2, 1]);
  await clock.advance(ttlMs);
  await expectState(here, [next, other], 3);
  await expectState(there, [next, other], 3);
});

async function expectState(
  locks: Locks,
  holders: readonly (Lease | undefined)[],
  waiters: number,
): Promise<void> {
  const state = await locks.inspect("k");
  const numbers = state.holders.map(({ fencingToken = 0n, permits }) => `${fencingToken} ${permits}`);
  expect(numbers.toSorted()).toEqual(holders.map((lease) => `${lease?.fencingToken} 1`).toSorted());
  expect(state.waiterCount).toBe(waiters);
}
