import { expect, test } from "vitest";

import { steppedClock } from "../../../support/fake-quorum.ts";
import { QuorumFixture } from "../../../support/quorum-fixture.ts";

// Rules without which the protocol would have counterexamples, each alone, if random runs hardly reach them.

const ttlMs = 10_000;
const cut = new Error("connect ECONNREFUSED");

test("a grant is valid from its request, less the possible difference of the clocks", async () => {
  const fixture = new QuorumFixture();
  const { locks, faults } = await fixture.client();
  for (const each of faults) {
    each.delay({ replyMs: 30 });
  }
  const lease = await fixture.settleWithin(30, locks.acquire("k", { ttlMs, renew: false }));
  expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs * 0.99 - 2 - 30);
  await fixture.advance(1_000);
  await fixture.settleWithin(30, lease.extend(ttlMs));
  expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs * 0.99 - 2 - 30);
});

test("a node that may have lost data does not vote", async () => {
  const fixture = new QuorumFixture();
  const one = await fixture.client({ maxTtlMs: ttlMs });
  const other = await fixture.client({ maxTtlMs: ttlMs });
  one.faults[2]?.refuse(cut);
  const lease = await fixture.settleWithin(10, one.locks.acquire("k", { ttlMs, renew: false }));
  fixture.servers[1]?.restart({ keepData: false });
  for (let tries = 0; tries < 3; tries += 1) {
    const tried = other.locks.tryAcquire("k").catch(() => null);
    expect(await fixture.settleWithin(1_000, tried)).toBeNull();
  }
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a node with a wrong clock does not vote, and votes again once a reply shows a right clock", async () => {
  let aheadMs = 0;
  const fixture = new QuorumFixture(3, (clock, index) => ({
    clock: index === 1 ? steppedClock(clock, () => aheadMs) : clock,
  }));
  const { locks, faults } = await fixture.client({ maxTtlMs: ttlMs });
  faults[2]?.refuse(cut);
  aheadMs = 250;
  await expect(fixture.settleWithin(1_000, locks.tryAcquire("k"))).rejects.toMatchObject({
    code: "quorum-not-reached",
    votes: [{ vote: "granted" }, { vote: "quarantined", reason: "its clock is off" }, { vote: "error" }],
  });
  expect(fixture.servers[1]?.get("lock:k")).toBeNull();
  aheadMs = 150;
  expect(await fixture.settleWithin(1_000, locks.tryAcquire("k"))).not.toBeNull();
});

test("the vote of a late node is released with the rest", async () => {
  const fixture = new QuorumFixture();
  const { locks, faults } = await fixture.client();
  faults[2]?.dropReply(1);
  const lease = await fixture.settleWithin(10, locks.acquire("k", { ttlMs }));
  await fixture.advance(1_000);
  await fixture.settleWithin(1_000, lease.release());
  expect(fixture.servers[2]?.get("lock:k")).toBeNull();
});

test("waiters are ordered by their arrival, whatever their own clocks say", async () => {
  const fixture = new QuorumFixture();
  const holder = await fixture.client();
  const fast = await fixture.client({ clock: steppedClock(fixture.clock, () => 3_000) });
  const slow = await fixture.client({ clock: steppedClock(fixture.clock, () => -3_000) });
  const lease = await fixture.settleWithin(10, holder.locks.acquire("k"));
  const order: string[] = [];
  for (const [name, { locks }] of Object.entries({ fast, slow })) {
    void locks.acquire("k").then(
      (granted) => {
        order.push(name);
        return granted.release();
      },
      () => undefined,
    );
    await fixture.advance(10);
  }
  await fixture.settleWithin(100, lease.release());
  expect(order).toEqual(["fast", "slow"]);
});

test("of two tries that share the nodes one wins", async () => {
  const fixture = new QuorumFixture(4);
  const [one, other] = [await fixture.client(), await fixture.client()];
  for (const index of [0, 1]) {
    one.faults[index + 2]?.delay({ requestMs: 1, replyMs: 1 });
    other.faults[index]?.delay({ requestMs: 1, replyMs: 1 });
  }
  const tried = Promise.all([one.locks.tryAcquire("k"), other.locks.tryAcquire("k")]);
  const leases = await fixture.settleWithin(60, tried);
  expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
});

test("only an equal number confirms the number on which the nodes are to agree", async () => {
  const fixture = new QuorumFixture();
  const { locks, faults } = await fixture.client();
  const greater = (fixture.clock.wall() + 500) * 1000;
  const fence = "holdfast:fence:{lock:k}";
  fixture.servers[0]?.call("HSET", fence, "last", String(greater - 1));
  faults[1]?.delay({ requestMs: 5 });
  faults[2]?.freeze();
  const acquired = locks.acquire("k", { ttlMs });
  await fixture.advance(7); // n0 and n1 have voted, and get the request to agree
  fixture.servers[1]?.call("HSET", fence, "first", String(greater + 5), "last", String(greater + 5));
  const lease = await fixture.settleWithin(100, acquired);
  expect(lease.fencingToken).toBe(BigInt(greater + 5));
});
