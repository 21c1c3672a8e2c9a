import { expect, test } from "vitest";

import { Stage } from "../../../support/quorum-fixture.ts";

// What a client makes of what the nodes remember, and of a clock that was set.

const ttlMs = 2_000;
const lock = "lock:k";
const cut = new Error("connect ECONNREFUSED");

test("who takes over after a holder that did not release waits three times what clocks may differ by", async () => {
  const stage = new Stage();
  const [holder, next] = [await stage.side(), await stage.side()];
  const held = await stage.within(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  held.orphan();
  const begun = stage.clock.now();
  let tookMs = 0;
  void next.locks.acquire("k", { ttlMs }).then(() => (tookMs = stage.clock.now() - begun));
  await stage.pass(ttlMs + 1_000);
  expect(tookMs).toBeGreaterThanOrEqual(ttlMs + 600 - 10);
  expect(tookMs).toBeLessThan(ttlMs + 700);
});

test("a try does not wait for that, and leaves nothing", async () => {
  const stage = new Stage();
  const [holder, next] = [await stage.side(), await stage.side()];
  const held = await stage.within(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  held.orphan();
  await stage.pass(ttlMs);
  expect(await stage.within(10, next.locks.tryAcquire("k"))).toBeNull();
  await stage.pass(20);
  expect(stage.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
  await stage.pass(600);
  expect(await stage.within(10, next.locks.tryAcquire("k"))).not.toBeNull();
});

test("a vote that waits for longer than its TTL is kept until it counts", async () => {
  const stage = new Stage();
  const [holder, next] = [await stage.side(), await stage.side()];
  const held = await stage.within(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  held.orphan();
  await stage.pass(ttlMs + 5);
  const lease = await stage.within(800, next.locks.acquire("k", { ttlMs: 100, renew: false }));
  expect(lease.fencingToken).toBeGreaterThan(held.fencingToken);
});

test("a lease survives that its key is deleted on every node", async () => {
  const stage = new Stage();
  const { locks } = await stage.side();
  const lease = await stage.within(10, locks.acquire("k", { ttlMs, renew: false }));
  for (const server of stage.servers) {
    server.del(lock);
  }
  await stage.within(10, lease.extend(ttlMs));
  expect(lease.remainingMs()).toBeGreaterThan(ttlMs * 0.9);
  expect(await stage.within(10, lease.release())).toBe(true);
});

test("an expired lease that late requests got again is not adopted, nor prolonged", async () => {
  const stage = new Stage();
  const [giver, taker, between] = [await stage.side(), await stage.side(), await stage.side()];
  for (const faults of giver.faults) {
    faults.duplicate(1, 4_800);
  }
  const given = await stage.within(10, giver.locks.acquire("k", { ttlMs, renew: false }));
  const transfer = given.transfer();
  await stage.pass(ttlMs + 1_000);
  const lease = await stage.within(1_000, between.locks.acquire("k", { ttlMs, renew: false }));
  await stage.within(10, lease.release());
  await stage.pass(2_500);
  expect(stage.servers.map((server) => server.get(lock))).toEqual(Array(3).fill(transfer.token));
  const adopted = stage.within(100, taker.locks.adopt(transfer));
  await expect(adopted).rejects.toMatchObject({ code: "lease-lost" });
});

test("a vote that is given back ends what was asked for before it", async () => {
  let aheadMs = 0;
  const stage = new Stage(3, (own, index) => ({
    clock: index === 1 ? own.ahead(() => aheadMs) : own.clock,
  }));
  const { locks, faults } = await stage.side();
  faults[2]?.refuse(cut);
  faults[1]?.delay({ requestMs: 10, replyMs: 10, messageMs: 1 });
  faults[1]?.dropSubscription(); // when it is heard again, the node is asked once more
  await stage.pass(9);
  const acquired = locks.acquire("k", { ttlMs: 30_000, renew: false });
  await stage.pass(9);
  aheadMs = 300; // for the first of two answers
  await stage.pass(2);
  aheadMs = 0;
  await stage.within(8_000, acquired);
  await stage.pass(100);
  expect(stage.servers[1]?.get(lock)).toBe(stage.servers[0]?.get(lock));
});
