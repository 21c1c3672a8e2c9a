import { expect, test } from "vitest";

import { track, FakeQuorum, refusedError } from "../../../support/fake-quorum.ts";

const withoutHandover = { locks: { handover: { max: 0, maxMs: 0 } } } as const;

test("a lease is also released on an unresponsive node if the next caller aborts", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp(withoutHandover);
  const other = await lab.warmUp();
  const held = await lab.settleWithin(20, locks.acquire("k", { ttlMs: 60_000 }));
  const others = other.locks.acquire("k", { ttlMs: 60_000, waitMs: 30_000 });
  await lab.clock.advance(20);
  const enough = new AbortController();
  const next = track(locks.acquire("k", { ttlMs: 60_000, waitMs: 30_000, signal: enough.signal }));
  await lab.clock.advance(20);
  faults[2]?.refuse(refusedError());
  expect(await lab.settleWithin(200, held.release())).toBe(true);
  enough.abort(new Error("enough"));
  const lease = await lab.settleWithin(200, others);
  expect(next.error).toBeDefined();
  await lab.settleWithin(100, lease.release());
  faults[2]?.refuse(null);
  await lab.clock.advance(10_000);
  expect(lab.holders("k")).toEqual([null, null, null]);
});

test("a release with a next caller returns true if its replies were lost and the request was repeated", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp(withoutHandover);
  const held = await lab.settleWithin(20, locks.acquire("k", { ttlMs: 60_000 }));
  const next = locks.acquire("k", { ttlMs: 60_000, waitMs: 30_000 });
  await lab.clock.advance(20);
  for (const each of faults) {
    each.dropReply(1, "reset");
  }
  expect(await lab.settleWithin(1_500, held.release())).toBe(true);
  expect((await next).remainingMs()).toBeGreaterThan(0);
});

test("a break leaves no residue on a node that votes for the broken lease afterwards", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp({ distancesMs: [1, 1, 40] });
  const operator = await lab.warmUp();
  const lease = await lab.settleWithin(5, locks.acquire("k", { ttlMs: 60_000 }));
  const { fencingToken } = lease;
  expect(
    await lab.settleWithin(10, operator.locks.admin.breakLock("k", { fencingToken, reason: "test" })),
  ).toBe(true);
  expect(lab.holders("k")).toEqual([null, null, null]);
  await lab.clock.advance(200);
  expect(lease.remainingMs()).toBe(0);
  expect(lab.holders("k")).toEqual([null, null, null]);
});

test("a try that yielded a vote leaves no queue entry", async () => {
  const lab = new FakeQuorum(3);
  const waiter = await lab.warmUp({ distancesMs: [6, 2, 2] });
  const { locks } = await lab.warmUp({ distancesMs: [1, 12, 12] });
  const acquired = waiter.locks.acquire("k", { ttlMs: 20_000, waitMs: 5_000 });
  await lab.clock.advance(0.5);
  expect(await lab.settleWithin(300, locks.tryAcquire("k", { ttlMs: 20_000 }))).toBeNull();
  expect((await acquired).remainingMs()).toBeGreaterThan(0);
  expect(lab.waiting("k")).toEqual([0, 0, 0]);
});

test("if replies come later than nodeTimeoutMs, all callers get the lock in turn, and no residue stays", async () => {
  const lab = new FakeQuorum(3);
  const { clock } = lab;
  const far = { distancesMs: [35, 35, 35] } as const;
  const processes = [lab.process(far), lab.process(far), lab.process(far)];
  const turns = [0, 0, 0];
  let isOver = false;
  const rounds = processes.map(async ({ locks }, index) => {
    while (!isOver) {
      const lease = await locks.acquire("k", { ttlMs: 5_000, waitMs: 20_000 });
      turns[index] = (turns[index] ?? 0) + 1;
      await new Promise<void>((resolve) => void clock.setTimer(resolve, 5));
      await lease.release();
    }
  });
  await clock.advance(5_000);
  isOver = true;
  await lab.settleWithin(10_000, Promise.all(rounds));
  expect(Math.min(...turns)).toBeGreaterThan(1);
  expect(lab.holders("k")).toEqual([null, null, null]);
  expect(lab.waiting("k")).toEqual([0, 0, 0]);
});
