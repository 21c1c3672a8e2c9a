import { expect, test } from "vitest";

import { track, FakeQuorum, refusedError, steppedClock } from "../../../support/fake-quorum.ts";

const patient = { ttlMs: 5_000, waitMs: 20_000 } as const;

test("a node with a wrong clock that replies first does not keep the client from a majority", async () => {
  const lab = new FakeQuorum(3, (clock, index) =>
    index === 1 ? { clock: steppedClock(clock, () => 10_000) } : {},
  );
  const { locks } = lab.process({ distancesMs: [1, 1, 8] });
  const lease = await lab.settleWithin(10_000, locks.acquire("k", patient));
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a client whose machine slept acquires on four nodes", async () => {
  const lab = new FakeQuorum(4);
  const { locks } = await lab.warmUp();
  lab.clock.sleep(10_000);
  const lease = await lab.settleWithin(10_000, locks.acquire("k", patient));
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test("a client whose machine slept acquires with one of three nodes down", async () => {
  const lab = new FakeQuorum(3);
  const { locks, faults } = await lab.warmUp();
  faults[2]?.refuse(refusedError());
  lab.clock.sleep(10_000);
  const lease = await lab.settleWithin(10_000, locks.acquire("k", patient));
  expect(lease.remainingMs()).toBeGreaterThan(0);
});

test.each(["health", "CONFIG"])(
  "a restarted durable node that is trusted is examined again if its first reply to %s was lost",
  async (name) => {
    const lab = new FakeQuorum(3, () => ({ durable: true }));
    const { locks, faults } = await lab.warmUp({ redlock: { restartGuard: "trust-durable" } });
    faults[1]?.refuse(refusedError());
    lab.nodes[2]?.restart({ keepData: true });
    faults[2]?.dropReply(({ script }) => script === name, "reset");
    const tried = locks.tryAcquire("k", { ttlMs: 1_000 });
    const released = track(tried.then((lease) => lease?.release()));
    await lab.clock.advance(100);
    faults[2]?.dropReply(0);
    const lease = await lab.settleWithin(20_000, locks.acquire("k", patient));
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(released.isSettled).toBe(true);
  },
);
