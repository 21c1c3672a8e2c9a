import { expect, test } from "vitest";

import { FakeQuorum, refusedError } from "../../../support/fake-quorum.ts";

// Two majorities of five nodes have one node in common. So it is the sum of the nodes without the grant that counts: those that never
// had the grant, and those that lost it without a sign that a client can see.

const ttlMs = 30_000;

test.each([
  [0, 1],
  [0, 2],
  [1, 0],
  [1, 1],
  [2, 0],
])("a lease that %i of five nodes never had, and %i lost, excludes others", async (missed, lost) => {
  const { lease, contender } = await after(missed, lost);
  expect(await contender()).toBeNull();
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test.each([
  [0, 3],
  [1, 2],
  [2, 1],
])("a lease that %i of five nodes never had, and %i lost, does not exclude others", async (missed, lost) => {
  const { lease, contender } = await after(missed, lost);
  expect(await contender()).not.toBeNull();
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a renewal gives the grant to the nodes that never had it, so that others may lose it", async () => {
  const { lab, lease, contender } = await after(2, 0);
  await lab.settleWithin(200, lease.extend(ttlMs));
  lab.loseData(3);
  lab.loseData(4);
  expect(await contender()).toBeNull();
});

/** A lease without the votes of the first nodes, whose grant the last nodes have lost. All nodes can be reached. */
async function after(missed: number, lost: number) {
  const lab = new FakeQuorum(5);
  const [holder, other] = [await lab.warmUp(), await lab.warmUp()];
  const down = holder.faults.slice(0, missed);
  for (const node of down) {
    node.refuse(refusedError());
  }
  const lease = await lab.settleWithin(500, holder.locks.acquire("k", { ttlMs, renew: false }));
  for (const node of down) {
    node.refuse(null);
  }
  for (let index = 5 - lost; index < 5; index += 1) {
    lab.loseData(index);
  }
  const contender = () => lab.settleWithin(1_000, other.locks.tryAcquire("k", { ttlMs }));
  return { lab, lease, contender };
}
