import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { redis } from "holdfast/redis";
import { createLocks } from "holdfast";
import { manualRandom, type InterceptedCall, type FaultInjector } from "holdfast/testing";
import { describe, expect, test } from "vitest";

import { systemClock } from "../../src/runtime/clock.ts";
import { clientConformance, wholeConformance } from "../support/conformance.ts";
import { GatedConnection } from "../drivers/redis/single/gated-connection.ts";
import { commandText } from "../support/diagnostics-log.ts";
import { World, type Process } from "./world.ts";

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

describe("a lost reply", () => {
  for (const mode of ["silence", "reset"] as const) {
    test(`(${mode}) on a free lock: the retry within the same acquire gets the same grant`, async () => {
      const world = new World();
      const { locks, faults } = world.process();
      const asked = record(faults, mode, 1);
      const lease = await world.settled(locks.acquire("k", { waitMs: 10_000 }));
      expect(asked).toHaveLength(2);
      expect(commandText(asked[1]?.args ?? [])[1]).toBe(commandText(asked[0]?.args ?? [])[1]); // one token
      expect(world.first("k")).toBe(String(lease.fencingToken));
      expect(lease.fencingToken).toBe(BigInt(asked[0]?.first ?? 0));
      expect(await world.settled(lease.release())).toBe(true);
      expect(world.server.get("lock:k")).toBeNull();
    });
  }

  test("of a release: the repeat counts as released", async () => {
    const world = new World();
    const { locks, faults } = world.process();
    const lease = await world.settled(locks.acquire("k"));
    faults.dropReply(1, "reset");
    expect(await world.settled(lease.release())).toBe(true);
  });

  /** Drops the replies of the first acquires, and records all acquires with the fencing token at that time. */
  function record(
    faults: FaultInjector,
    mode: "silence" | "reset",
    losses: number,
  ): (InterceptedCall & { first: string })[] {
    const asked: (InterceptedCall & { first: string })[] = [];
    faults.dropReply((call) => {
      if (commandText(call.args)[0] !== "acquire") {
        return false;
      }
      asked.push({ ...call, args: call.args.slice(), first: World.current?.first("k") ?? "" });
      return asked.length <= losses;
    }, mode);
    return asked;
  }
});

describe("lost messages", () => {
  test("a grant whose notification was lost is found by the poll", async () => {
    const world = new World();
    const here = world.process();
    const there = world.process();
    const lease = await world.settled(here.locks.acquire("k", { ttlMs: 60_000 }));
    const next = there.locks.acquire("k", { waitMs: 60_000, ttlMs: 60_000 });
    await world.pass(1_000);
    const lost: string[] = [];
    there.faults.dropMessages((text) => text.startsWith("grant ") && lost.push(text) > 0);
    await world.settled(lease.release());
    const releasedAt = world.clock.now();
    const [token] = world.server.get("lock:k")?.split(" ") ?? [];
    const found = await world.settled(next);
    expect(lost.map((text) => text.split(" ")[1])).toContain(token); // the server granted the lock, and no client received the notification
    expect(world.clock.now() - releasedAt).toBeLessThanOrEqual(5_000);
    found.throwIfLost();
  });

  for (const since of ["the beginning", "the subscription was proved"] as const) {
    test(`all since ${since}: every release is noticed within the poll's 5 s`, async () => {
      const world = new World();
      const processes = Array.from({ length: 5 }, () => world.process());
      if (since === "the beginning") {
        world.server.dropMessages(() => true);
      }
      const [first, ...others] = processes as [Process, ...Process[]];
      let held = await world.settled(first.locks.acquire("k", { ttlMs: 60_000 }));
      const granted: (typeof held)[] = [];
      const waiting = others.map(async ({ locks }) => {
        granted.push(await locks.acquire("k", { ttlMs: 60_000, waitMs: Infinity }));
      });
      await world.pass(10_000);
      world.server.dropMessages(() => true);
      for (const _other of others) {
        await world.settled(held.release());
        const releasedAt = world.clock.now();
        while (granted.length === 0) {
          await world.pass(10);
        }
        expect(world.clock.now() - releasedAt).toBeLessThanOrEqual(5_010);
        expect(granted).toHaveLength(1);
        held = granted.pop() as typeof held;
        await world.pass(2_000);
        held.throwIfLost();
      }
      await Promise.all(waiting);
    });
  }

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
