import type { Lockable, Locks } from "holdfast";
import { expect, test } from "vitest";

import { contended } from "../../../../../src/testing/conformance/fixture.ts";
import { FakeQuorum, refusedError } from "../../../../support/fake-quorum.ts";

const ttlMs = 60_000;

test("a client whose machine slept finds a holder and breaks its lease, with one of three nodes down", async () => {
  const lab = new FakeQuorum(3);
  const [holder, operator] = [
    await lab.warmUp({ locks: { owner: "holder", handover: false } }),
    await lab.warmUp(),
  ];
  const { fencingToken } = await lab.settleWithin(100, holder.locks.acquire("k", { ttlMs }));
  operator.faults[2]?.refuse(refusedError());
  const afterSleep = <T>(request: () => Promise<T>): Promise<T> => {
    lab.clock.sleep(100); // the client's estimates of the nodes' clocks are useless now
    return lab.settleWithin(5_000, request());
  };
  const state = await afterSleep(() => operator.locks.inspect("k"));
  expect(state.holders).toMatchObject([{ owner: "holder", fencingToken }]);
  expect(await afterSleep(() => operator.locks.checkFence("k", fencingToken))).toBe("current");
  expect(await afterSleep(() => operator.locks.admin.breakLock("k", { fencingToken, reason: "test" }))).toBe(
    true,
  );
});

test("a lease is broken although the node that reports its number is late once", async () => {
  const { lab, fencingToken, operator } = await differingLease();
  operator.faults[2]?.refuse(refusedError(), 1);
  const broken = operator.locks.admin.breakLock("k", { fencingToken, reason: "test" });
  expect(await lab.settleWithin(5_000, broken)).toBe(true);
});

test("a fencing token is current if a majority granted it, and refused if too few nodes reply", async () => {
  const { lab, fencingToken, operator } = await differingLease();
  const check = (number: bigint) => lab.settleWithin(5_000, operator.locks.checkFence("k", number));
  expect(await check(fencingToken)).toBe("current");
  expect(await check(7n)).toBe("stale"); // the number on one node
  operator.faults[2]?.refuse(refusedError());
  await expect(check(fencingToken)).rejects.toMatchObject({ code: "quorum-not-reached", retryable: true });
  expect(await check(fencingToken - 7n)).toBe("stale");
});

test.each(["mutex", "reader"])("the number of a %s that only one node has is stale", async (kind) => {
  const lab = new FakeQuorum(3);
  const [holder, operator] = [await lab.warmUp({ locks: { handover: false } }), await lab.warmUp()];
  const ours = kind === "mutex" ? holder.locks.mutex("k") : holder.locks.readWrite("k").read;
  const { fencingToken } = await lab.settleWithin(100, ours.acquire({ ttlMs }));
  const check = () => lab.settleWithin(5_000, operator.locks.checkFence("k", fencingToken));
  expect(await check()).toBe("current");
  lab.loseData(0);
  expect(await check()).toBe("current");
  lab.loseData(1);
  expect(await check()).toBe("stale");
});

test("a later number on one node makes the earlier numbers of a block stale", async () => {
  const lab = new FakeQuorum(3);
  const handover = { maxMs: 600_000 }; // until then no extension reports a last number
  const [holder, operator] = [await lab.warmUp({ locks: { handover } }), await lab.warmUp()];
  const { fencingToken } = await lab.settleWithin(300, contended(holder.locks, "k", { ttlMs }));
  const check = (number: bigint) => lab.settleWithin(5_000, operator.locks.checkFence("k", number));
  expect(await check(fencingToken)).toBe("unknown");
  const [token] = lab.holders("k");
  const next = fencingToken + 1n; // like a renewal that has reached one node so far
  lab.nodes[2]?.call("HSET", "holdfast:info:{lock:k}", "token", String(token), "number", String(next));
  expect(await check(fencingToken)).toBe("stale");
  expect(await check(next)).toBe("unknown");
});

test("a break fails with an error if too few nodes reply to know the lease's number", async () => {
  const { lab, fencingToken, operator } = await differingLease();
  operator.faults[2]?.refuse(refusedError());
  const broken = operator.locks.admin.breakLock("k", { fencingToken, reason: "test" });
  await expect(lab.settleWithin(5_000, broken)).rejects.toMatchObject({
    code: "quorum-not-reached",
    outcome: "none",
    retryable: true,
  });
  const another = operator.locks.admin.breakLock("k", { fencingToken: fencingToken - 7n, reason: "test" });
  expect(await lab.settleWithin(5_000, another)).toBe(false); // none of the nodes with the lease gave that number
});

/** A lease on three nodes, one of which reports another number for the lease. */
async function differingLease(): Promise<{
  lab: FakeQuorum;
  fencingToken: bigint;
  operator: Awaited<ReturnType<FakeQuorum["warmUp"]>>;
}> {
  const lab = new FakeQuorum(3);
  const [holder, operator] = [await lab.warmUp({ locks: { handover: false } }), await lab.warmUp()];
  const { fencingToken } = await lab.settleWithin(100, holder.locks.acquire("k", { ttlMs }));
  lab.nodes[1]?.call("HSET", "holdfast:fence:{lock:k}", "first", "7", "last", "7");
  return { lab, fencingToken, operator };
}

test.each<[string, (locks: Locks) => Lockable, (locks: Locks) => Lockable]>([
  ["a mutex", (locks) => locks.mutex("k"), (locks) => locks.mutex("k")],
  ["a read lock", (locks) => locks.readWrite("k").read, (locks) => locks.readWrite("k").write],
])(
  "the reason of %s is reported, even by a first node that knows the holder by a notification",
  async (_what, ours, rivals) => {
    const lab = new FakeQuorum(3);
    const holder = await lab.warmUp({ distancesMs: [10, 1, 1] });
    const rival = await lab.warmUp({ distancesMs: [1, 10, 10] });
    const granted = ours(holder.locks).acquire({ ttlMs, reason: "report" });
    await lab.clock.advance(1);
    rivals(rival.locks)
      .acquire({ ttlMs })
      .catch(() => undefined); // has the first node's vote until that vote is requested back
    const { fencingToken } = await lab.settleWithin(100, granted);
    const { holders } = await lab.settleWithin(100, rival.locks.inspect("k"));
    expect(holders).toMatchObject([{ reason: "report", fencingToken }]);
  },
);

test.each(["renewed", "only adopted"])(
  "a lease that was %s is released although a node has lost its counter",
  async (how) => {
    const lab = new FakeQuorum(3);
    const { locks } = await lab.warmUp();
    const lease = await lab.settleWithin(100, locks.acquire("k", { ttlMs }));
    lab.nodes[0]?.del("holdfast:fence:{lock:k}");
    const adopted = await lab.settleWithin(100, locks.adopt(lease.transfer()));
    if (how === "renewed") {
      await lab.settleWithin(100, adopted.extend());
    }
    expect(await lab.settleWithin(100, adopted.release())).toBe(true);
    expect(lab.holders("k")).toEqual([null, null, null]);
  },
);

test("a lease is extended with one of three nodes down, even right after the machine slept", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp();
  const lease = await lab.settleWithin(100, locks.acquire("k", { ttlMs, renew: false }));
  faults[2]?.refuse(refusedError());
  await lab.settleWithin(500, lease.extend());
  lab.clock.sleep(100);
  const before = lease.validUntil;
  await lab.settleWithin(500, lease.extend());
  expect(lease.validUntil).toBeGreaterThan(before);
});
