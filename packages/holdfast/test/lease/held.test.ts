import { expect, test } from "vitest";

import { clock, onManualClock, open, ttlMs } from "../support/lease-fixture.ts";

onManualClock();

test("held lists the leases of this Locks as plain values without a token", async () => {
  const [here, there] = [open({}, { owner: "here" }), open()];
  const first = await here.acquire("a", { ttlMs, reason: "charge", labels: { order: "1" } });
  await there.acquire("b");
  await clock.advance(500);
  const waiting = here.acquire("a");
  await clock.advance(0);
  const held = here.held();
  expect(held).toEqual([
    {
      key: "a",
      kind: "mutex",
      owner: "here",
      reason: "charge",
      labels: { order: "1" },
      fencingToken: first.fencingToken,
      since: 1_000_000,
      heldMs: 500,
      ttlMs,
      remainingMs: first.remainingMs(),
      localWaiters: 1,
    },
  ]);
  expect(JSON.stringify(held)).toContain(`"fencingToken":"${first.fencingToken}"`);
  expect(structuredClone(held)).toEqual(held);
  await first.release();
  const second = await waiting;
  expect(here.held()).toMatchObject([{ fencingToken: second.fencingToken, heldMs: 0, since: 1_000_500 }]);
});

test("each kind of lease is listed by its keys at the engine, until it ends", async () => {
  const locks = open();
  const write = await locks.readWrite("rw").write.acquire();
  await locks.semaphore("s", { limit: 3 }).acquire({ permits: 2 });
  await locks.all(["x", "y"]).acquire();
  const transferred = await locks.acquire("t");
  const orphan = await locks.acquire("o", { ttlMs });
  await locks.reentrant("r").withLock(() =>
    locks.reentrant("r").withLock(() => {
      expect(locks.held().filter(({ key }) => key === "r")).toHaveLength(1);
    }),
  );
  orphan.orphan();
  transferred.transfer();
  await write.downgrade();
  const shown = locks.held().map(({ key, kind, mode, permits }) => [key, kind, mode ?? permits] as const);
  expect(shown.sort(([a], [b]) => (a < b ? -1 : 1))).toEqual([
    ["o", "mutex", undefined],
    ["rw", "read-write", "read"],
    ["s", "semaphore", 2],
    ["x", "mutex", undefined],
    ["y", "mutex", undefined],
  ]);
  await clock.advance(ttlMs);
  expect(locks.held().map(({ key }) => key)).not.toContain("o");
});
