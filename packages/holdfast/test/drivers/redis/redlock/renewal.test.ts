import type { Lease } from "holdfast";
import { expect, test } from "vitest";

import { FakeQuorum, refusedError } from "../../../support/fake-quorum.ts";

test("a node that was down at the first use counts for a lease that is only renewed", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = lab.process();
  faults[2]?.refuse(refusedError());
  const lease = await lab.settleWithin(5_000, locks.acquire("k", { ttlMs: 10_000 }));
  faults[2]?.refuse(null);
  await lab.clock.advance(60_000);
  faults[1]?.refuse(refusedError());
  await lab.clock.advance(12_000);
  expectHeld(lease);
});

test("a lease is renewed although every reply comes later than nodeTimeoutMs", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = lab.process({ distancesMs: [35, 35, 35], redlock: { nodeTimeoutMs: 50 } });
  const lease = await lab.settleWithin(2_000, locks.acquire("k", { ttlMs: 6_000, waitMs: 10_000 }));
  await lab.clock.advance(8_000);
  expectHeld(lease);
});

test("a node that agreed on the number after the decision counts for the lease", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp({ distancesMs: [1, 1, 1.2] });
  const base = Math.round(lab.clock.wall()) * 1000 + 500_000;
  for (const [index, ahead] of [0, 1_000, 500].entries()) {
    const last = String(base + ahead); // of earlier grants, which did not reach all nodes
    lab.nodes[index]?.call("HSET", "holdfast:fence:{lock:k}", "first", last, "last", last);
  }
  const lease = await lab.settleWithin(50, locks.acquire("k", { ttlMs: 10_000 }));
  faults[0]?.refuse(refusedError());
  await lab.clock.advance(12_000);
  expectHeld(lease);
});

test("an adoption may be repeated if too few nodes replied at first", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp();
  const adopter = await lab.warmUp();
  const lease = await lab.settleWithin(100, locks.acquire("k", { ttlMs: 60_000 }));
  const transfer = lease.transfer();
  for (const each of adopter.faults.slice(1)) {
    each.refuse(new Error("read ECONNRESET"), 1);
  }
  await expect(lab.settleWithin(3_000, adopter.locks.adopt(transfer))).rejects.toMatchObject({
    code: "quorum-not-reached",
    retryable: true,
  });
  const adopted = await lab.settleWithin(3_000, adopter.locks.adopt(transfer));
  await expect(lab.settleWithin(100, adopted.extend())).resolves.toBeUndefined();
  expectHeld(adopted);
});

test.each([3, 5])(
  "an adoption waits for all nodes if the first replies are valid for only %d ms more",
  async (leftMs) => {
    const lab = new FakeQuorum(3);
    const { locks } = await lab.warmUp();
    const adopter = await lab.warmUp({ distancesMs: [1, 1, 5] });
    const lease = await lab.settleWithin(100, locks.acquire("k", { ttlMs: 10_000 }));
    const transfer = lease.transfer();
    lab.nodes[0]?.set("lock:k", transfer.token, leftMs); // like a vote that came late by notification, and is not extended yet
    const adopted = await lab.settleWithin(50, adopter.locks.adopt(transfer, { renew: false }));
    expect(adopted.remainingMs()).toBeGreaterThan(5_000);
  },
);

test("an adoption does not wait for an unresponsive node if the others leave enough time", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp();
  const adopter = await lab.warmUp({ distancesMs: [1, 1, 1] });
  const lease = await lab.settleWithin(100, locks.acquire("k", { ttlMs: 10_000 }));
  adopter.faults[2]?.freeze();
  expectHeld(await lab.settleWithin(10, adopter.locks.adopt(lease.transfer())));
});

test("a node that is refilled after a loss does not revive the lease, and keeps no grant", async () => {
  const lab = new FakeQuorum(3);
  const { locks, driver, faults } = await lab.warmUp();
  const lease = await lab.settleWithin(20, locks.acquire("k", { ttlMs: 10_000, renew: false }));
  const { key, token } = lease.transfer();
  const extend = { key, token, fencingToken: lease.fencingToken, ttlMs: 10_000, info: undefined };
  lab.loseData(2);
  const first = driver.extend(extend);
  await lab.clock.advance(2);
  faults[2]?.delay({ requestMs: 1, replyMs: 200 });
  await lab.clock.advance(2);
  expect(await lab.settleWithin(1, first)).toMatchObject({ outcome: "extended" });
  expect(lab.holders("k")[2]).toBe(token); // refilled, and the reply is under way
  lab.loseData(0);
  expect(await lab.settleWithin(100, driver.extend(extend))).toEqual({ outcome: "lost", reason: "expired" });
  await lab.clock.advance(500);
  faults[2]?.delay({ requestMs: 1, replyMs: 1 });
  expect(lab.holders("k")[2]).toBeNull();
  expect(await lab.settleWithin(100, driver.extend(extend))).toEqual({ outcome: "lost", reason: "expired" });
});

function expectHeld(lease: Lease): void {
  expect(lease.signal.aborted).toBe(false);
  expect(lease.remainingMs()).toBeGreaterThan(0);
}

test("a process that did not acquire a lease extends it, though one node is unresponsive", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp();
  const { driver, faults } = await lab.warmUp();
  const lease = await lab.settleWithin(20, locks.acquire("k", { ttlMs: 1_000, renew: false }));
  const { key, token } = lease.transfer();
  const { fencingToken } = lease;
  faults[0]?.freeze();
  const extension = await lab.settleWithin(
    200,
    driver.extend({ key, token, fencingToken, ttlMs: 10_000, info: undefined }),
  );
  expect(extension).toMatchObject({ outcome: "extended" });
  await lab.clock.advance(5_000);
  expect(await lab.settleWithin(200, locks.tryAcquire("k"))).toBeNull();
  await lab.clock.advance(6_000);
  const over = await lab.settleWithin(
    200,
    driver.extend({ key, token, fencingToken, ttlMs: 10_000, info: undefined }),
  );
  expect(over).toEqual({ outcome: "lost", reason: "expired" });
});

test("a process that did not acquire a lease does not extend a minority's grant, nor report a loss", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp();
  const { driver, faults } = await lab.warmUp();
  const lease = await lab.settleWithin(20, locks.acquire("k", { ttlMs: 10_000, renew: false }));
  const { key, token } = lease.transfer();
  const { fencingToken } = lease;
  lab.loseData(0);
  faults[1]?.freeze();
  const extension = await lab.settleWithin(
    300,
    driver.extend({ key, token, fencingToken, ttlMs: 10_000, info: undefined }),
  );
  expect(extension.outcome).toBe("unknown");
});
