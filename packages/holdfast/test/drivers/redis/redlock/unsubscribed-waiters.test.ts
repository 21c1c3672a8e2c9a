import { expect, test } from "vitest";

import { track, FakeQuorum, type FakeProcess } from "../../../support/fake-quorum.ts";

const waitMs = 40_000;

for (const [nodeCount, waiterCount] of [
  [3, 2],
  [4, 2],
  [5, 3],
] as const) {
  test(`${waiterCount} unsubscribed waiters settle split votes on ${nodeCount} nodes`, async () => {
    const lab = new FakeQuorum(nodeCount);
    for (const node of lab.nodes) {
      node.failPublish(true);
    }
    const waiters = await nearOneEach(lab, waiterCount);
    await lab.clock.advance(20_000);
    expect(await turns(lab, waiters)).toBe(waiterCount);
  });
}

test("an unsubscribed waiter settles split votes with a subscribed one", async () => {
  const lab = new FakeQuorum(4);
  const waiters = [near(lab, 0, 2), near(lab, 1, 2)];
  for (const each of waiters[1]?.faults ?? []) {
    each.dropMessages(() => true);
  }
  await warm(lab, waiters);
  await lab.clock.advance(20_000);
  expect(await turns(lab, waiters)).toBe(2);
});

async function nearOneEach(lab: FakeQuorum, count: number): Promise<FakeProcess[]> {
  const waiters = Array.from({ length: count }, (_, index) => near(lab, index, count));
  await warm(lab, waiters);
  return waiters;
}

/** A process whose requests arrive first at every `count`-th node. */
function near(lab: FakeQuorum, index: number, count: number): FakeProcess {
  return lab.process({ distancesMs: lab.nodes.map((_, node) => (node % count === index ? 1 : 5)) });
}

async function warm(lab: FakeQuorum, waiters: readonly FakeProcess[]): Promise<void> {
  for (const [index, { locks }] of waiters.entries()) {
    const lease = await lab.settleWithin(100, locks.acquire(`warm${index}`, { ttlMs: 1_000 }));
    await lab.settleWithin(50, lease.release());
  }
}

/**
 * All send requests at one moment, and release the lock as soon as they acquire it.
 * @returns how many acquired the lock
 */
async function turns(lab: FakeQuorum, waiters: readonly FakeProcess[]): Promise<number> {
  const turnsTaken = waiters.map(({ locks }) =>
    track(locks.acquire("k", { ttlMs: 10_000, waitMs }).then((lease) => lease.release())),
  );
  await lab.clock.advance(waitMs + 2_000);
  return turnsTaken.filter(({ value }) => value === true).length;
}

test("the earlier waiter soon requests a vote that a later one has yielded to it without a notification", async () => {
  const lab = new FakeQuorum(4);
  const [first, later] = [await lab.warmUp({ distancesMs: [9, 9, 9, 9] }), await lab.warmUp()];
  for (const each of first.faults) {
    each.dropMessages((text) => text.startsWith("grant"));
  }
  for (const node of lab.nodes.slice(2)) {
    node.set("lock:k", `${"a".repeat(32)}:${"b".repeat(32)}:1`, 60_000); // so that no waiter has a majority
  }
  const waits = { ttlMs: 60_000, waitMs };
  const acquired = first.locks.acquire("k", waits);
  await lab.clock.advance(1);
  void later.locks.acquire("k", waits).catch(() => undefined);
  await lab.clock.advance(1_000);
  for (const node of lab.nodes.slice(2)) {
    node.del("lock:k"); // without a notification
  }
  expect((await lab.settleWithin(3_000, acquired)).remainingMs()).toBeGreaterThan(0); // before any poll, which comes after 5 s
});

test("a waiter that came before the holder does not poll more often", async () => {
  const lab = new FakeQuorum(3);
  const [first, later] = [await lab.warmUp({ distancesMs: [9, 9, 9] }), await lab.warmUp()];
  await lab.clock.advance(1_500); // the processes are registered
  void first.locks.acquire("k", { ttlMs: 60_000, waitMs }).catch(() => undefined);
  await lab.clock.advance(1);
  const lease = await lab.settleWithin(6, later.locks.acquire("k", { ttlMs: 60_000 }));
  await lab.clock.advance(100);
  const before = first.sent();
  await lab.clock.advance(14_000);
  expect(first.sent() - before).toBeLessThanOrEqual(6); // each node twice, after 5 s
  expect(lease.remainingMs()).toBeGreaterThan(0);
});
