import { expect, test } from "vitest";
import { timeFactor } from "@holdfast/test-kit";

import { steppedClock } from "../../../support/fake-quorum.ts";
import { QuorumFixture } from "../../../support/quorum-fixture.ts";

// How a client uses what nodes remember, and how it handles a clock that was set.

const ttlMs = 2_000;
const lock = "lock:k";
const cut = new Error("connect ECONNREFUSED");

test("an acquire after a holder that did not release waits three times the largest difference of clocks", async () => {
  const fixture = new QuorumFixture();
  const [holder, next] = [await fixture.client(), await fixture.client()];
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  held.orphan();
  const begun = fixture.clock.now();
  let tookMs = 0;
  void next.locks.acquire("k", { ttlMs }).then(() => (tookMs = fixture.clock.now() - begun));
  await fixture.advance(ttlMs + 1_000);
  expect(tookMs).toBeGreaterThanOrEqual(ttlMs + 600 - 10);
  expect(tookMs).toBeLessThan(ttlMs + 700 * timeFactor);
});

test("a try does not wait that long, and leaves no residue", async () => {
  const fixture = new QuorumFixture();
  const [holder, next] = [await fixture.client(), await fixture.client()];
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  held.orphan();
  await fixture.advance(ttlMs);
  expect(await fixture.settleWithin(10, next.locks.tryAcquire("k"))).toBeNull();
  await fixture.advance(20);
  expect(fixture.servers.map((server) => server.get(lock))).toEqual([null, null, null]);
  await fixture.advance(600);
  expect(await fixture.settleWithin(10, next.locks.tryAcquire("k"))).not.toBeNull();
});

test("a vote that waits for longer than its TTL is kept until it counts", async () => {
  const fixture = new QuorumFixture();
  const [holder, next] = [await fixture.client(), await fixture.client()];
  const held = await fixture.settleWithin(10, holder.locks.acquire("k", { ttlMs, renew: false }));
  held.orphan();
  await fixture.advance(ttlMs + 5);
  const lease = await fixture.settleWithin(800, next.locks.acquire("k", { ttlMs: 100, renew: false }));
  expect(lease.fencingToken).toBeGreaterThan(held.fencingToken);
});

test("a lease survives the deletion of its key on every node", async () => {
  const fixture = new QuorumFixture();
  const { locks } = await fixture.client();
  const lease = await fixture.settleWithin(10, locks.acquire("k", { ttlMs, renew: false }));
  for (const server of fixture.servers) {
    server.del(lock);
  }
  await fixture.settleWithin(10, lease.extend(ttlMs));
  expect(lease.remainingMs()).toBeGreaterThan(ttlMs * 0.9);
  expect(await fixture.settleWithin(10, lease.release())).toBe(true);
});

test("an expired lease that late requests acquired again is neither adopted nor extended", async () => {
  const fixture = new QuorumFixture();
  const [maker, adopter, between] = [await fixture.client(), await fixture.client(), await fixture.client()];
  for (const faults of maker.faults) {
    faults.duplicate(1, 4_800);
  }
  const given = await fixture.settleWithin(10, maker.locks.acquire("k", { ttlMs, renew: false }));
  const transfer = given.transfer();
  await fixture.advance(ttlMs + 1_000);
  const lease = await fixture.settleWithin(1_000, between.locks.acquire("k", { ttlMs, renew: false }));
  await fixture.settleWithin(10, lease.release());
  await fixture.advance(2_500);
  expect(fixture.servers.map((server) => server.get(lock))).toEqual(Array(3).fill(transfer.token));
  const adopted = fixture.settleWithin(100, adopter.locks.adopt(transfer));
  await expect(adopted).rejects.toMatchObject({ code: "lease-lost" });
});

test("the release of a vote makes earlier requests for it obsolete", async () => {
  let aheadMs = 0;
  const fixture = new QuorumFixture(3, (clock, index) => ({
    clock: index === 1 ? steppedClock(clock, () => aheadMs) : clock,
  }));
  const { locks, faults } = await fixture.client();
  faults[2]?.refuse(cut);
  faults[1]?.delay({ requestMs: 10, replyMs: 10, messageMs: 1 });
  faults[1]?.dropSubscription(); // once notifications return, the node gets another request
  await fixture.advance(9);
  const acquired = locks.acquire("k", { ttlMs: 30_000, renew: false });
  await fixture.advance(9);
  aheadMs = 300; // for the first of two replies
  await fixture.advance(2);
  aheadMs = 0;
  await fixture.settleWithin(8_000, acquired);
  await fixture.advance(100);
  expect(fixture.servers[1]?.get(lock)).toBe(fixture.servers[0]?.get(lock));
});
