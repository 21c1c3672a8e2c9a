import type { Lease } from "holdfast";
import { expect, test } from "vitest";

import { said } from "../../../support/said.ts";
import { follow, Lab, refusal } from "./lab.ts";

const loading = new Error("LOADING Redis is loading the dataset in memory");

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

test("a lease was ours at its release, also where a repeat took a vote back before the release came to that node", async () => {
  const lab = new Lab(3);
  const { locks, faults } = await lab.warm();
  const named = { ttlMs: 30_000, waitMs: 5_000, attemptId: "a" };
  const loading = new Error("LOADING Redis is loading the dataset in memory");
  faults[2]?.refuse(loading);
  const lease = await lab.within(200, locks.acquire("k", named));
  faults[1]?.refuse(loading, 1); // the release is sent there again
  const released = lease.release();
  await lab.clock.advance(5);
  faults[2]?.refuse(null);
  const [stale] = lab.holders("k").filter((holder) => holder !== null);
  expect(lab.holders("k")).toEqual([null, stale, null]);
  const repeated = await lab.within(20, locks.acquire("k", named));
  expect(lab.holders("k")).not.toContain(stale);
  expect(await lab.within(500, released)).toBe(true);
  expect(repeated.fencingToken).toBeGreaterThan(lease.fencingToken);
  expect(await lab.within(100, repeated.release())).toBe(true);
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

test.each([
  ["has told its number", false],
  ["was not heard of", true],
])(
  "a release that one node hears late, which %s, does not take its vote from a repeat elsewhere that goes on with it",
  async (_case, isUnheard) => {
    const lab = new Lab(3);
    const first = await lab.warm();
    const repeating = await lab.warm();
    const other = await lab.warm();
    const named = { ttlMs: 30_000, waitMs: 5_000, attemptId: "a" };
    first.faults[0]?.dropReply(({ args }) => isUnheard && said(args)[0] === "acquire");
    const lease = await lab.within(20, first.locks.acquire("k", named));
    first.faults[0]?.freeze();
    expect(await lab.within(500, lease.release())).toBe(true);
    repeating.faults[2]?.refuse(refusal()); // so it has one vote and what is left of the attempt
    const repeated = await lab.within(2_000, repeating.locks.acquire("k", named));
    expect(repeated.fencingToken).toBeGreaterThan(lease.fencingToken);
    first.faults[0]?.thaw();
    await lab.clock.advance(100);
    expect(repeated.remainingMs()).toBeGreaterThan(0);
    expect(await lab.within(500, other.locks.tryAcquire("k"))).toBeNull();
    expect(await lab.within(500, repeated.release())).toBe(true);
    expect(await lab.within(500, other.locks.tryAcquire("k"))).not.toBeNull();
  },
);

test.each([
  ["one has a greater number than the lease", [0, 0, 300_000]],
  ["one did not tell that it has agreed", [100_000, 200_000, 300_000]],
])("what a named attempt was granted is given back by all nodes: %s", async (_case, ahead) => {
  const lab = new Lab(3);
  const { locks, faults } = await lab.warm();
  const fence = "holdfast:fence:{lock:k}";
  for (const [node, micros] of ahead.entries()) {
    const last = String(lab.clock.wall() * 1000 + micros);
    lab.nodes[node]?.store.hset(fence, "first", last, "last", last);
  }
  let isAsked = false;
  faults[0]?.dropReply(({ args }) => {
    const [name] = said(args);
    isAsked ||= name === "agree";
    return isAsked && (name === "agree" || name === "acquire");
  });
  const lease = await lab.within(200, locks.acquire("k", { ttlMs: 30_000, attemptId: "a" }));
  const numbers = lab.nodes.map((node) => BigInt(node.store.hget(fence, "first") ?? 0) - lease.fencingToken);
  expect(numbers.filter((number) => number === 0n).length).toBeGreaterThanOrEqual(2);
  expect(await lab.within(500, lease.release())).toBe(true);
  expect(lab.nodes.map((node) => node.get("lock:k"))).toEqual([null, null, null]);
});

test("what a named attempt was granted is given back by a node that was filled again and did not say so", async () => {
  const lab = new Lab(3);
  const { locks, faults } = await lab.warm();
  faults[2]?.refuse(refusal());
  const lease = await lab.within(200, locks.acquire("k", { ttlMs: 30_000, attemptId: "a" }));
  faults[2]?.refuse(null);
  await lab.clock.advance(1_000);
  faults[2]?.dropReply(({ args }) => said(args)[0] === "acquire");
  await lab.within(200, lease.extend());
  expect(lab.nodes[2]?.get("lock:k")).not.toBeNull();
  expect(await lab.within(500, lease.release())).toBe(true);
  expect(lab.nodes.map((node) => node.get("lock:k"))).toEqual([null, null, null]);
});

test("what was adopted is given back by a node that has a greater number and was not heard of", async () => {
  const lab = new Lab(3);
  const { locks } = await lab.warm();
  const elsewhere = await lab.warm();
  const last = String(lab.clock.wall() * 1000 + 300_000);
  lab.nodes[2]?.store.hset("holdfast:fence:{lock:k}", "first", last, "last", last);
  const lease = await lab.within(200, locks.acquire("k", { ttlMs: 30_000 }));
  elsewhere.faults[2]?.dropReply(({ args }) => said(args)[0] === "verify");
  const adopted = await lab.within(200, elsewhere.locks.adopt(lease.transfer()));
  expect(await lab.within(500, adopted.release())).toBe(true);
  expect(lab.nodes.map((node) => node.get("lock:k"))).toEqual([null, null, null]);
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

test("of two who ask at once for one attempt neither counts on what the other gives back", async () => {
  const lab = new Lab(3);
  const twice = await lab.warm({ distancesMs: [9, 1, 3] });
  const rival = await lab.warm({ distancesMs: [1, 5, 5] });
  const options = { ttlMs: 10_000, waitMs: 5_000 };
  const named = { ...options, attemptId: "a" };
  const waited = follow(rival.locks.acquire("k", options));
  await lab.clock.advance(1); // it is before, and asks back what the other has of the nodes where it comes behind
  const repeats = [twice.locks.acquire("k", named), twice.locks.acquire("k", named)];
  const granted = repeats.map((repeat) => follow(repeat));
  await lab.clock.advance(100);
  expect(waited.value?.remainingMs()).toBeGreaterThan(0);
  expect(granted.map(({ value }) => value)).toEqual([undefined, undefined]);

  expect(await lab.within(100, (waited.value as Lease).release())).toBe(true);
  const [one, other] = await lab.within(100, Promise.all(repeats));
  expect(one?.fencingToken).toBeGreaterThan((waited.value as Lease).fencingToken);
  expect(other?.fencingToken).toBe(one?.fencingToken);
});

test("what a repeat in another process counts on is not given back by who asked before", async () => {
  const lab = new Lab(3);
  const first = await lab.warm({ distancesMs: [9, 1, 3] });
  const second = await lab.warm({ distancesMs: [9, 1.1, 3.1] });
  const rival = await lab.warm({ distancesMs: [1, 5, 5] });
  const options = { ttlMs: 10_000, waitMs: 30_000 };
  const named = { ...options, attemptId: "a" };
  const waited = follow(rival.locks.acquire("k", options));
  await lab.clock.advance(1);
  const asked = follow(first.locks.acquire("k", named));
  const lease = await lab.within(100, second.locks.acquire("k", named));
  expect(waited.isSettled).toBe(false);
  expect(await lab.within(100, lease.release())).toBe(true);
  expect(waited.value?.fencingToken).toBeGreaterThan(lease.fencingToken);
  expect(asked.isSettled).toBe(false);

  expect(await lab.within(100, (waited.value as Lease).release())).toBe(true);
  await lab.clock.advance(11_000); // it asks no node where the repeat had claimed what it wanted to give back, before that is over
  expect(asked.value?.fencingToken).toBeGreaterThan((waited.value as Lease).fencingToken);
});

test("what the late request of one process keeps of another's repeat on a node ends with its TTL", async () => {
  const lab = new Lab(3);
  const first = await lab.warm({ distancesMs: [1, 1, 5] });
  const second = await lab.warm();
  const named = { ttlMs: 10_000, attemptId: "a" };
  const lease = await lab.within(3, first.locks.acquire("k", named));
  const again = await lab.within(3, second.locks.acquire("k", named)); // the last node has a vote of its own for it
  expect(again.fencingToken).toBe(lease.fencingToken);
  await lab.clock.advance(10); // now the first process's request has claimed that
  expect(await lab.within(100, again.release())).toBe(true);
  expect(lab.holders("k")).toEqual([null, null, expect.any(String)]);
  const other = await lab.within(100, lab.process().locks.acquire("k", { ttlMs: 1_000 }));
  expect(await lab.within(100, other.release())).toBe(true);
  await lab.clock.advance(10_000);
  expect(lab.holders("k")).toEqual([null, null, null]);
});

test("who tries by the name of an attempt that waits here is told that it is held", async () => {
  const lab = new Lab(3);
  const holder = await lab.warm();
  const { locks } = await lab.warm();
  const held = await lab.within(20, holder.locks.acquire("k", { ttlMs: 30_000 }));
  const waited = follow(locks.acquire("k", { ttlMs: 10_000, waitMs: 5_000, attemptId: "a" }));
  await lab.clock.advance(20);
  expect(await lab.within(100, locks.tryAcquire("k", { ttlMs: 10_000, attemptId: "a" }))).toBeNull();
  expect(waited.isSettled).toBe(false);
  expect(await lab.within(100, held.release())).toBe(true);
  expect(waited.value?.fencingToken).toBeGreaterThan(held.fencingToken);
});

test("who waits behind another of its attempt is told of the time that it had, and of the nodes where they fail", async () => {
  const lab = new Lab(3);
  const holder = await lab.warm();
  const { locks, faults } = await lab.warm();
  const named = { ttlMs: 10_000, attemptId: "a" };
  const held = await lab.within(20, holder.locks.acquire("k", { ttlMs: 30_000 }));
  const first = follow(locks.acquire("k", { ...named, waitMs: 3_000 }));
  const second = follow(locks.acquire("k", { ...named, waitMs: 500 }));
  await lab.clock.advance(1_000);
  expect(second.error).toMatchObject({
    code: "wait-timeout",
    holder: { fencingToken: held.fencingToken },
  });
  faults.forEach((fault) => fault.refuse(refusal()));
  const third = follow(locks.acquire("k", { ...named, waitMs: 4_000 }));
  await lab.clock.advance(5_000);
  expect(first.isSettled).toBe(true);
  expect(third.error).toMatchObject({ code: "quorum-not-reached" });
});

test("a repeat does not give back the votes that a lease of its process stands on", async () => {
  const lab = new Lab(3);
  const near = await lab.warm({ distancesMs: [1, 1, 9] });
  const rival = await lab.warm({ distancesMs: [5, 5, 1] });
  const named = { ttlMs: 10_000, waitMs: 5_000, attemptId: "a" };
  const waited = follow(rival.locks.acquire("k", { ttlMs: 10_000, waitMs: 8_000 }));
  await lab.clock.advance(1); // it is before, and comes first to one node alone
  const lease = await lab.within(20, near.locks.acquire("k", named));
  near.faults[1]?.refuse(refusal()); // so the repeat has one vote, and the rival asks that back
  const repeated = follow(near.locks.acquire("k", named));
  await lab.clock.advance(2_000);
  expect(lease.remainingMs()).toBeGreaterThan(0);
  expect(waited.isSettled).toBe(false);
  near.faults[1]?.refuse(null);
  await lab.clock.advance(2_000);
  expect(repeated.value?.fencingToken).toBe(lease.fencingToken);
  expect(await lab.within(100, lease.release())).toBe(true);
  expect(waited.value?.fencingToken).toBeGreaterThan(lease.fencingToken);
});

test("a message of what was given back, which comes late, is no vote for a repeat with its token", async () => {
  const lab = new Lab(3);
  const holder = await lab.warm();
  const [first, other] = [await lab.warm(), await lab.warm()];
  const named = { ttlMs: 2_900, renew: false, attemptId: "a" };
  const held = await lab.within(20, holder.locks.acquire("k", { ttlMs: 30_000 }));
  const given = follow(first.locks.acquire("k", { ...named, waitMs: 500 }));
  await lab.clock.advance(50);
  const waited = follow(other.locks.acquire("k", { ttlMs: 20_000, waitMs: 60_000 }));
  await lab.clock.advance(50);
  for (const each of first.faults) {
    each.delay({ requestMs: 1, replyMs: 1, messageMs: 150 });
  }
  await lab.clock.advance(398);
  const released = held.release(); // at the nodes 1 ms before it gives up
  first.faults[1]?.refuse(loading); // what it gives back stays there
  await lab.within(8, released);
  expect(given.error).toBeDefined();
  first.faults[1]?.refuse(null);
  const again = follow(first.locks.acquire("k", { ...named, waitMs: 5_000 }));
  await lab.clock.advance(220);
  expect(waited.value?.remainingMs()).toBeGreaterThan(0);
  expect(again.isSettled).toBe(false);
});

test("who joins an earlier attempt does not release what a repeat elsewhere has been elected with", async () => {
  const lab = new Lab(3);
  const before = await lab.warm();
  const [first, second, other] = [await lab.warm(), await lab.warm(), await lab.warm()];
  const named = { ttlMs: 10_000, waitMs: 5_000, attemptId: "a" };
  const lease = await lab.within(20, before.locks.acquire("k", named));
  before.faults[0]?.freeze(); // its release does not come there
  expect(await lab.within(500, lease.release())).toBe(true);
  let lost = 0;
  first.faults[2]?.dropReply(({ args }) => said(args)[0] === "acquire" && lost++ === 0);
  follow(first.locks.acquire("k", named));
  await lab.clock.advance(10);
  const repeat = await lab.within(20, second.locks.acquire("k", named));
  const waited = follow(other.locks.acquire("k", { ttlMs: 1_000, waitMs: 500 }));
  await lab.clock.advance(325);
  expect(repeat.remainingMs()).toBeGreaterThan(0);
  expect(waited.value).toBeUndefined();
});
