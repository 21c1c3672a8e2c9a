import { expect, test } from "vitest";

import { Stage } from "../../../support/quorum-fixture.ts";

// The rules without which the protocol would have counterexamples, each alone. Where chance hardly reaches it.

const ttlMs = 10_000;
const cut = new Error("connect ECONNREFUSED");

test("a grant is valid from its request, less what the clocks may disagree by", async () => {
  const stage = new Stage();
  const { locks, faults } = await stage.side();
  for (const each of faults) {
    each.delay({ replyMs: 30 });
  }
  const lease = await stage.within(30, locks.acquire("k", { ttlMs, renew: false }));
  expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs * 0.99 - 2 - 30);
  await stage.pass(1_000);
  await stage.within(30, lease.extend(ttlMs));
  expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs * 0.99 - 2 - 30);
});

test("a node that forgot does not vote", async () => {
  const stage = new Stage();
  const one = await stage.side({ maxTtlMs: ttlMs });
  const other = await stage.side({ maxTtlMs: ttlMs });
  one.faults[2]?.refuse(cut);
  const lease = await stage.within(10, one.locks.acquire("k", { ttlMs, renew: false }));
  stage.servers[1]?.restart({ keepData: false });
  for (let tries = 0; tries < 3; tries += 1) {
    const tried = other.locks.tryAcquire("k").catch(() => null);
    expect(await stage.within(1_000, tried)).toBeNull();
  }
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a node whose clock is off does not vote, and does again as soon as an answer shows that it is right", async () => {
  let aheadMs = 0;
  const stage = new Stage(3, (own, index) => ({
    clock: index === 1 ? own.ahead(() => aheadMs) : own.clock,
  }));
  const { locks, faults } = await stage.side({ maxTtlMs: ttlMs });
  faults[2]?.refuse(cut);
  aheadMs = 250;
  await expect(stage.within(1_000, locks.tryAcquire("k"))).rejects.toMatchObject({
    code: "quorum-not-reached",
    votes: [{ vote: "granted" }, { vote: "quarantined", reason: "its clock is off" }, { vote: "error" }],
  });
  expect(stage.servers[1]?.get("lock:k")).toBeNull();
  aheadMs = 150;
  expect(await stage.within(1_000, locks.tryAcquire("k"))).not.toBeNull();
});

test("what a late node has is released with the rest", async () => {
  const stage = new Stage();
  const { locks, faults } = await stage.side();
  faults[2]?.dropReply(1);
  const lease = await stage.within(10, locks.acquire("k", { ttlMs }));
  await stage.pass(1_000);
  await stage.within(1_000, lease.release());
  expect(stage.servers[2]?.get("lock:k")).toBeNull();
});

test("waiters stand in the order in which they came, whatever their own clocks say", async () => {
  const stage = new Stage();
  const holder = await stage.side();
  const fast = await stage.side({ clock: stage.ahead(() => 3_000) });
  const slow = await stage.side({ clock: stage.ahead(() => -3_000) });
  const lease = await stage.within(10, holder.locks.acquire("k"));
  const order: string[] = [];
  for (const [name, { locks }] of Object.entries({ fast, slow })) {
    void locks.acquire("k").then(
      (granted) => {
        order.push(name);
        return granted.release();
      },
      () => undefined,
    );
    await stage.pass(10);
  }
  await stage.within(100, lease.release());
  expect(order).toEqual(["fast", "slow"]);
});

test("of two tries that share the nodes one wins", async () => {
  const stage = new Stage(4);
  const [one, other] = [await stage.side(), await stage.side()];
  for (const index of [0, 1]) {
    one.faults[index + 2]?.delay({ requestMs: 1, replyMs: 1 });
    other.faults[index]?.delay({ requestMs: 1, replyMs: 1 });
  }
  const tried = Promise.all([one.locks.tryAcquire("k"), other.locks.tryAcquire("k")]);
  const leases = await stage.within(60, tried);
  expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
});

test("only an equal number is a yes to the number that the nodes are asked to agree on", async () => {
  const stage = new Stage();
  const { locks, faults } = await stage.side();
  const greater = (stage.clock.wall() + 500) * 1000;
  const fence = "holdfast:fence:{lock:k}";
  stage.servers[0]?.call("HSET", fence, "last", String(greater - 1));
  faults[1]?.delay({ requestMs: 5 });
  faults[2]?.freeze();
  const acquired = locks.acquire("k", { ttlMs });
  await stage.pass(7); // n0 and n1 have voted, and are asked to agree
  stage.servers[1]?.call("HSET", fence, "first", String(greater + 5), "last", String(greater + 5));
  const lease = await stage.within(100, acquired);
  expect(lease.fencingToken).toBe(BigInt(greater + 5));
});
