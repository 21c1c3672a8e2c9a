import { expect, test } from "vitest";

import { follow, Lab, refusal } from "./lab.ts";

test("what a repeat of a named attempt has claimed is not taken back by who asked first", async () => {
  const lab = new Lab(3);
  const holder = await lab.warm();
  const first = await lab.warm();
  const second = await lab.warm();
  const other = await lab.warm();
  const held = await lab.within(20, holder.locks.acquire("k", { ttlMs: 30_000 }));
  const given = follow(first.locks.acquire("k", { ttlMs: 10_000, waitMs: 500, attemptId: "a" }));
  await lab.clock.advance(100);
  for (const each of first.faults) {
    each.freeze(); // it is granted the lock, does not hear of it, and gives up
  }
  expect(await lab.within(700, held.release())).toBe(true);
  expect(given.isSettled).toBe(true);
  expect(given.value).toBeUndefined();

  const repeated = second.locks.acquire("k", { ttlMs: 10_000, waitMs: 5_000, attemptId: "a" });
  const waited = follow(other.locks.acquire("k", { ttlMs: 10_000, waitMs: 8_000 }));
  const lease = await lab.within(500, repeated);
  for (const each of first.faults) {
    each.thaw(); // what it wanted to take back comes now
  }
  await lab.clock.advance(100);
  expect(lease.remainingMs()).toBeGreaterThan(0);
  expect(waited.isSettled).toBe(false);
  await expect(lab.within(20, lease.extend())).resolves.toBeUndefined();

  expect(await lab.within(100, lease.release())).toBe(true);
  expect(waited.value?.fencingToken).toBeGreaterThan(lease.fencingToken);
});

test("what a named attempt left and nobody claimed is taken back", async () => {
  const lab = new Lab(3);
  const holder = await lab.warm();
  const first = await lab.warm();
  const other = await lab.warm();
  const held = await lab.within(20, holder.locks.acquire("k", { ttlMs: 30_000 }));
  const given = follow(first.locks.acquire("k", { ttlMs: 10_000, waitMs: 500, attemptId: "a" }));
  await lab.clock.advance(100);
  for (const each of first.faults) {
    each.freeze();
  }
  expect(await lab.within(700, held.release())).toBe(true);
  expect(given.error).toBeDefined();
  for (const each of first.faults) {
    each.thaw();
  }
  const lease = await lab.within(2_000, other.locks.acquire("k", { ttlMs: 10_000, waitMs: 20_000 }));
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a repeat in the same process has the number of the lease, also where it had to bring the nodes to another", async () => {
  const lab = new Lab(3);
  const { locks, faults } = await lab.warm();
  const named = { ttlMs: 30_000, waitMs: 5_000, attemptId: "a" };
  faults[2]?.refuse(refusal());
  const lease = await lab.within(200, locks.acquire("k", named));
  faults[2]?.refuse(null);
  await lab.clock.advance(1_000);
  await lab.within(200, lease.extend()); // fills the third again, which has another number
  faults[0]?.refuse(refusal()); // so that no majority tells one number
  const repeated = await lab.within(2_000, locks.acquire("k", named));
  expect(repeated.fencingToken).toBe(lease.fencingToken);
  await expect(lab.within(200, lease.extend())).resolves.toBeUndefined();
});

test("a repeat that goes on with what is left of its attempt gets a larger number than the lease between them", async () => {
  const lab = new Lab(3);
  const first = await lab.warm();
  const between = await lab.warm();
  const repeating = await lab.warm();
  const options = { ttlMs: 30_000, waitMs: 5_000 };
  const named = { ...options, attemptId: "a" };
  const lease = await lab.within(20, first.locks.acquire("k", named));
  first.faults[0]?.freeze(); // does not hear of the release
  expect(await lab.within(500, lease.release())).toBe(true);
  const other = await lab.within(500, between.locks.acquire("k", options));
  await lab.within(500, other.release());
  repeating.faults[2]?.refuse(refusal()); // so it has one vote and the leftover, and goes on with that
  const repeated = await lab.within(2_000, repeating.locks.acquire("k", named));
  expect(repeated.fencingToken).toBeGreaterThan(other.fencingToken);
});

test("a repeat in the same process has the number of a valid lease, also where most nodes are new to it", async () => {
  const lab = new Lab(5);
  const { locks, faults } = await lab.warm();
  const named = { ttlMs: 30_000, waitMs: 5_000, attemptId: "a" };
  const only = (nodes: readonly number[]): void => {
    for (const [node, fault] of faults.entries()) {
      fault.refuse(nodes.includes(node) ? null : refusal());
    }
  };
  only([0, 1, 2]);
  const lease = await lab.within(200, locks.acquire("k", named));
  await lab.clock.advance(1_000);
  only([0, 3, 4]);
  const repeated = await lab.within(4_000, locks.acquire("k", named));
  expect(lease.remainingMs()).toBeGreaterThan(0);
  expect(repeated.fencingToken).toBe(lease.fencingToken);
});

test("a repeat has no number of a lease that was lost, also where one node still has it", async () => {
  const lab = new Lab(5);
  const { locks, faults } = await lab.warm();
  const between = await lab.warm();
  const options = { ttlMs: 2_000, waitMs: 10_000 };
  const named = { ...options, renew: false, attemptId: "a" };
  const refuse = (nodes: readonly number[], error: Error | null, times?: number): void => {
    for (const node of nodes) {
      faults[node]?.refuse(error, times);
    }
  };
  const lease = await lab.within(20, locks.acquire("k", named));
  refuse([1, 2, 3, 4], refusal());
  await lab.clock.advance(1_500);
  await expect(lab.within(500, lease.extend())).rejects.toThrow("agreed"); // one node has it for longer now
  refuse([1, 2, 3, 4], null);
  await lab.clock.advance(500);
  expect(lease.remainingMs()).toBe(0);
  const other = await lab.within(200, between.locks.acquire("k", options));
  await lab.within(200, other.release());
  refuse([2, 3, 4], refusal(), 1); // so it goes on with what is left, and all that are new have one number
  const repeated = await lab.within(2_000, locks.acquire("k", named));
  expect(repeated.fencingToken).toBeGreaterThan(other.fencingToken);
});
