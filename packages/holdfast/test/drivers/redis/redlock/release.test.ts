import type { Lease } from "holdfast";
import { expect, test } from "vitest";

import {
  track,
  FakeQuorum,
  refusedError,
  type TrackedPromise,
  type FakeProcess,
} from "../../../support/fake-quorum.ts";

// A release takes at most `commandTimeoutMs`, whatever happens to the nodes, with or without a next caller.

const budgetMs = 2_000;
const ttlMs = 60_000;
const withoutHandover = { locks: { handover: { max: 0, maxMs: 0 } } } as const;

/** A release of a lease, its faults, and the next caller of the process, if there is one. */
interface Splits {
  readonly name: string;
  /** How long requests to all nodes are refused. */
  readonly refusedMs: number;
  /** How many nodes never reply after that. */
  readonly frozen: number;
  /** When the next caller aborts. `undefined` stands for no next caller. */
  readonly waitMs?: number;
}

const splits: readonly Splits[] = [
  {
    name: "refused for 2.7 s, then a majority is frozen, with a next caller",
    refusedMs: 2_700,
    frozen: 3,
    waitMs: 30_000,
  },
  { name: "the same, and the next caller aborts before", refusedMs: 2_700, frozen: 3, waitMs: 1_700 },
  { name: "the same, and the next caller aborts early", refusedMs: 2_700, frozen: 3, waitMs: 300 },
  { name: "the same, without a next caller", refusedMs: 2_700, frozen: 3 },
  {
    name: "refused for 0.6 s, then a majority is frozen, with a next caller",
    refusedMs: 600,
    frozen: 3,
    waitMs: 30_000,
  },
  { name: "refused for 0.6 s, then a majority is frozen", refusedMs: 600, frozen: 3 },
  { name: "all frozen from the beginning, with a next caller", refusedMs: 0, frozen: 5, waitMs: 30_000 },
  { name: "all frozen from the beginning", refusedMs: 0, frozen: 5 },
  { name: "refused all the time, with a next caller", refusedMs: Infinity, frozen: 0, waitMs: 30_000 },
  { name: "refused all the time", refusedMs: Infinity, frozen: 0 },
];

test.each(splits)("a release fails in time if too few nodes reply: $name", async (split) => {
  const lab = new FakeQuorum(5);
  const { process, released } = await releasedUnder(lab, split);
  await lab.clock.advance(budgetMs - 1);
  expect(released.isSettled).toBe(false);
  await lab.clock.advance(1);
  expect(released.error).toMatchObject({ code: "quorum-not-reached", outcome: "unknown", retryable: true });
  await lab.clock.advance(3_000);
  heal(process);
  await lab.clock.advance(10_000); // the release has continued
  expect(lab.holders("k").filter(Boolean)).toEqual([]);
});

test.each(splits.filter(({ refusedMs }) => refusedMs < budgetMs))(
  "a release returns true if a majority replies in time: $name",
  async (split) => {
    const lab = new FakeQuorum(5);
    const { process, released } = await releasedUnder(lab, { ...split, frozen: 2 });
    await lab.clock.advance(budgetMs);
    heal(process);
    expect(released.value).toBe(true);
  },
);

test("a release takes no longer on nodes without a handshake", async () => {
  const lab = new FakeQuorum(3);
  const holder = await lab.warmUp();
  const lease = await lab.settleWithin(100, holder.locks.acquire("k", { ttlMs }));
  const stranger = lab.process();
  refuse(stranger, refusedError());
  const { token } = lease.transfer();
  const released = track(stranger.driver.release("k", token, lab.clock.now() + ttlMs));
  await lab.clock.advance(1_000);
  refuse(stranger, null);
  freeze(stranger, 3);
  await lab.clock.advance(budgetMs - 1_000);
  expect(released.error).toMatchObject({ code: "quorum-not-reached", outcome: "unknown" });
});

test("a stalled process reads a reply that has arrived before it reports a missing reply", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp({ distancesMs: [0.2, 0.2, 0.2] }); // the replies are there as soon as the process continues
  const lease = await lab.settleWithin(100, locks.acquire("k", { ttlMs }));
  const released = track(lease.release());
  lab.clock.block(3_000);
  await lab.clock.advance(10);
  expect(released.value).toBe(true);
});

async function releasedUnder(
  lab: FakeQuorum,
  { refusedMs, frozen, waitMs }: Splits,
): Promise<{ process: FakeProcess; lease: Lease; released: TrackedPromise<boolean> }> {
  const process = await lab.warmUp(withoutHandover);
  const lease = await lab.settleWithin(20, process.locks.acquire("k", { ttlMs }));
  if (waitMs !== undefined) {
    track(process.locks.acquire("k", { ttlMs: 1_000, waitMs: waitMs + 20, renew: false }));
    await lab.clock.advance(20);
  }
  if (refusedMs > 0) {
    refuse(process, refusedError());
  }
  lab.clock.setTimer(() => {
    refuse(process, null);
    freeze(process, frozen);
  }, refusedMs);
  return { process, lease, released: track(lease.release()) };
}

function freeze({ faults }: FakeProcess, count: number): void {
  for (const each of faults.slice(0, count)) {
    each.freeze();
  }
}

function heal(process: FakeProcess): void {
  refuse(process, null);
  for (const each of process.faults) {
    each.thaw();
  }
}

function refuse({ faults }: FakeProcess, error: Error | null): void {
  for (const each of faults) {
    each.refuse(error);
  }
}
