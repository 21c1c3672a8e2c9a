import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { redis } from "holdfast/redis";
import { createLocks } from "holdfast";
import { manualRandom } from "holdfast/testing";
import { describe, expect, test } from "vitest";

import { systemClock } from "../../src/runtime/clock.ts";
import { clientConformance, wholeConformance } from "../support/conformance.ts";
import { GatedConnection } from "../drivers/redis/single/gated-connection.ts";
import { World } from "./world.ts";

describe.concurrent("conformance on the fake Redis", () => {
  wholeConformance({
    test,
    open: async () => {
      const server = new FakeRedis({ clock: systemClock });
      return { driver: redis(server.connect()), other: redis(server.connect()) };
    },
  });
});

describe.concurrent("conformance on the fake Redis without sharded pub/sub", () => {
  clientConformance({
    test,
    open: async () => {
      const server = new FakeRedis({ clock: systemClock, version: "6.2.14" });
      const keyPrefix = "app:";
      return { driver: redis(server.connect({ keyPrefix })), other: redis(server.connect({ keyPrefix })) };
    },
  });
});

test("the repeat of a release whose reply was lost counts as released", async () => {
  const world = new World();
  const { locks, faults } = world.process();
  const lease = await world.settled(locks.acquire("k"));
  faults.dropReply(1, "reset");
  expect(await world.settled(lease.release())).toBe(true);
});

test("a lost subscription: a missed grant is found as soon as the subscription is back", async () => {
  const world = new World();
  const here = world.process();
  const there = world.process();
  const lease = await world.settled(here.locks.acquire("k", { ttlMs: 60_000 }));
  const next = there.locks.acquire("k", { waitMs: 60_000 });
  await world.pass(1_000);
  there.faults.dropMessages((text) => text.startsWith("grant "));
  await world.settled(lease.release());
  await world.pass(500);
  there.faults.dropMessages(null);
  there.faults.dropSubscription();
  const upAt = world.clock.now();
  await world.settled(next);
  expect(world.clock.now() - upAt).toBeLessThanOrEqual(20);
});

test("a grant after the caller's timeout is released at once", async () => {
  const world = new World();
  const gate = new GatedConnection(world.server.connect());
  const locks = createLocks(redis(gate, { clock: world.clock, random: manualRandom(99) }));
  await world.settled(locks.inspect("k")); // completes the handshake
  gate.isClosed = true;
  const refused = locks.acquire("k", { waitMs: 500 }).catch((error: unknown) => error);
  await world.pass(1_000);
  expect(await world.settled(refused)).toMatchObject({ code: "engine-unavailable" });
  expect(world.server.get("lock:k")).toBeNull();
  gate.open();
  await world.pass(10);
  expect(world.server.get("holdfast:fence")).not.toBeNull(); // the lock was granted
  expect(world.server.get("lock:k")).toBeNull(); // and released
  await world.settled(locks.close());
});

describe("the server", () => {
  test("a restart with its data: waiters keep their positions and the holder its lock", async () => {
    const world = new World();
    const here = world.process();
    const there = world.process();
    const { runId } = world.server;
    const lease = await world.settled(here.locks.acquire("k"));
    const next = there.locks.acquire("k", { waitMs: 60_000 });
    await world.pass(1_000);
    world.server.restart({ keepData: true });
    expect(world.server.runId).not.toBe(runId);
    await world.pass(1_000);
    lease.throwIfLost();
    expect(await world.settled(lease.release())).toBe(true);
    expect((await world.settled(next)).fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  test("a restart without its data: the fencing tokens still rise, and the holder learns of its loss", async () => {
    const world = new World();
    const here = world.process();
    const there = world.process();
    const lease = await world.settled(here.locks.acquire("k", { ttlMs: 30_000 }));
    world.server.restart({ keepData: false });
    await world.pass(10); // the time is the lower bound of fencing tokens
    const next = await world.settled(there.locks.acquire("k"));
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await world.pass(10_100);
    expect(() => lease.throwIfLost()).toThrow("is lost");
  });

  test("a server that forbids our channels: waiters poll, and every waiter is granted", async () => {
    const world = new World();
    world.server.failPublish(true);
    const here = world.process();
    const there = world.process();
    const lease = await world.settled(here.locks.acquire("k"));
    const next = there.locks.acquire("k", { waitMs: 60_000 });
    await world.pass(3_000);
    expect(world.server.keys().some((key) => key.startsWith("holdfast:queue:"))).toBe(false);
    await world.settled(lease.release());
    const releasedAt = world.clock.now();
    await world.settled(next);
    expect(world.clock.now() - releasedAt).toBeLessThanOrEqual(5_000);
  });
});
