import type { Lease } from "holdfast";
import { expect, test } from "vitest";

import {
  track,
  FakeQuorum,
  refusedError,
  type TrackedPromise,
  type FakeProcess,
} from "../../../support/fake-quorum.ts";

// How long a release may take: `commandTimeoutMs`, whatever becomes of the nodes, and whether it is passed on or not.

const budgetMs = 2_000;
const ttlMs = 60_000;
const withoutHandover = { locks: { handover: { max: 0, maxMs: 0 } } } as const;

/** What somebody does with a lease in hand, while another caller of the process waits or not. */
interface Splits {
  readonly name: string;
  /** How long the ways to all nodes are refused. */
  readonly refusedMs: number;
  /** How many nodes never answer behind that. */
  readonly frozen: number;
  /** When the next caller gives up; undefined: nobody waits. */
  readonly waitMs?: number;
}

const splits: readonly Splits[] = [
  {
    name: "refused for 2.7 s, then a majority is frozen, passed on",
    refusedMs: 2_700,
    frozen: 3,
    waitMs: 30_000,
  },
  { name: "the same, and who comes next gives up before", refusedMs: 2_700, frozen: 3, waitMs: 1_700 },
  { name: "the same, and who comes next gives up early", refusedMs: 2_700, frozen: 3, waitMs: 300 },
  { name: "the same, and nobody waits", refusedMs: 2_700, frozen: 3 },
  {
    name: "refused for 0.6 s, then a majority is frozen, passed on",
    refusedMs: 600,
    frozen: 3,
    waitMs: 30_000,
  },
  { name: "refused for 0.6 s, then a majority is frozen", refusedMs: 600, frozen: 3 },
  { name: "all frozen from the beginning, passed on", refusedMs: 0, frozen: 5, waitMs: 30_000 },
  { name: "all frozen from the beginning", refusedMs: 0, frozen: 5 },
  { name: "refused all the time, passed on", refusedMs: Infinity, frozen: 0, waitMs: 30_000 },
  { name: "refused all the time", refusedMs: Infinity, frozen: 0 },
];

test.each(splits)("it is told in time that too few answered: $name", async (split) => {
  const lab = new FakeQuorum(5);
  const { process, released } = await releasedUnder(lab, split);
  await lab.clock.advance(budgetMs - 1);
  expect(released.isSettled).toBe(false);
  await lab.clock.advance(1);
  expect(released.error).toMatchObject({ code: "quorum-not-reached", outcome: "unknown", retryable: true });
  await lab.clock.advance(3_000);
  heal(process);
  await lab.clock.advance(10_000); // it has gone on meanwhile
  expect(lab.holders("k").filter(Boolean)).toEqual([]);
});

test.each(splits.filter(({ refusedMs }) => refusedMs < budgetMs))(
  "it was ours where a majority answers within it: $name",
  async (split) => {
    const lab = new FakeQuorum(5);
    const { process, released } = await releasedUnder(lab, { ...split, frozen: 2 });
    await lab.clock.advance(budgetMs);
    heal(process);
    expect(released.value).toBe(true);
  },
);

test("a node that is not known yet takes no more of it", async () => {
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

test("a process that stood still reads the answer that is there before it says that there is none", async () => {
  const lab = new FakeQuorum(3);
  const { locks } = await lab.warmUp({ distancesMs: [0.2, 0.2, 0.2] }); // the answers are there as soon as it runs again
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
