import { expect, test } from "vitest";

import { track, FakeQuorum } from "../../../support/fake-quorum.ts";

const ttlMs = 60_000;

test("a request that a node executes too late gets no vote there", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp();
  for (const each of faults) {
    each.duplicate(1, 6_000);
  }
  const lease = await lab.settleWithin(10, locks.acquire("k", { ttlMs, renew: false }));
  await lab.settleWithin(10, lease.release());
  await lab.clock.advance(7_000);
  expect(lab.holders("k")).toEqual([null, null, null]);
});

test("a request that was executed too late is repeated, and is elected", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp();
  for (const each of faults) {
    each.delay({ requestMs: 5_500, replyMs: 1 });
  }
  const acquired = track(locks.acquire("k", { ttlMs, waitMs: 30_000, renew: false }));
  await lab.clock.advance(5_499);
  for (const each of faults) {
    each.delay({ requestMs: 1, replyMs: 1 });
  }
  await lab.clock.advance(10);
  expect(lab.holders("k").filter((holder) => holder !== null)).toEqual([]);
  await lab.clock.advance(12_000);
  expect(acquired.value?.remainingMs()).toBeGreaterThan(0);
});

test("a request that waits on a sleeping machine is served after the sleep", async () => {
  const lab = new FakeQuorum(3);
  const [holder, waiter] = [await lab.warmUp(), await lab.warmUp()];
  const lease = await lab.settleWithin(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  const acquired = track(waiter.locks.acquire("k", { ttlMs, waitMs: 8_000, renew: false }));
  await lab.clock.advance(100);
  lab.clock.sleep(20_000);
  await lab.clock.advance(6_000); // the request is repeated, and its reply has the time
  expect(lab.waiting("k")).toEqual([1, 1, 1]);
  await lab.settleWithin(10, lease.release());
  await lab.clock.advance(100);
  expect(acquired.value?.remainingMs()).toBeGreaterThan(0);
});

test("a queue entry of a request after a sleep has the nodes' present time", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp();
  lab.clock.sleep(10_000);
  await lab.settleWithin(100, locks.acquire("k", { ttlMs, renew: false }));
  const ticket = Number(lab.holders("k")[0]?.split(":").at(-1));
  expect(Math.abs(ticket / 1000 - lab.clock.wall())).toBeLessThan(200);
});

test("tickets begin anew if the nodes' time proved to be ahead", async () => {
  let aheadMs = 60_000;
  const lab = new FakeQuorum(3, (clock) => ({ clock: { ...clock, wall: () => clock.wall() + aheadMs } }));
  const { locks } = await lab.warmUp();
  aheadMs = 0;
  const ticketOf = async (key: string): Promise<number> => {
    await lab.settleWithin(100, locks.acquire(key, { ttlMs, renew: false }));
    return Number(lab.holders(key)[0]?.split(":").at(-1));
  };
  await ticketOf("before");
  const ticket = await ticketOf("k");
  expect(Math.abs(ticket / 1000 - lab.clock.wall())).toBeLessThan(200);
});
