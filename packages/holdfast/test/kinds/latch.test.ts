import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, isLockError, type Driver, type Latch, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { redis, redlock } from "holdfast/redis";
import { faulty, manualClock, manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

import { closeSimulated, simulateRedis, type SimulatedRedis } from "../support/simulated-redis.ts";

const ttlMs = 60_000;

/** The present result of a promise, or "pending". */
function watched(promise: Promise<unknown>): { state: string } {
  const seen = { state: "pending" };
  promise.then(
    () => (seen.state = "done"),
    (error: unknown) => (seen.state = isLockError(error) ? error.code : String(error)),
  );
  return seen;
}

/** The latch as one process sees it. */
function latchOf(
  { locks }: Pick<SimulatedRedis, "locks">,
  by: number,
  count = 1,
  lastsMs: number = ttlMs,
): Latch {
  return (locks[by] as Locks).latch("k", { count, ttlMs: lastsMs });
}

/** Whether a call has a count. */
function isCount({ args }: { args: readonly string[] }): boolean {
  return args.includes("countDown");
}

/** Two processes with a latch of 1 between them, and one of them waits. */
async function waitingWorld(): Promise<{
  world: SimulatedRedis;
  waiting: { state: string };
  open: () => Promise<void>;
}> {
  const world = await simulateRedis(2);
  const [one, other] = [latchOf(world, 0), latchOf(world, 1)];
  const waiting = watched(other.wait({ waitMs: Infinity }));
  await world.clock.advance(10);
  const open = async (): Promise<void> => {
    const counted = watched(one.countDown());
    await world.clock.advance(4);
    expect(counted.state).toBe("done");
  };
  return { world, waiting, open };
}

test("a notification ends a wait", async () => {
  const { world, waiting, open } = await waitingWorld();
  await world.clock.advance(300);
  await open();
  await world.clock.advance(2);
  expect(waiting.state).toBe("done");
  await closeSimulated(world);
});

test("a lost notification delays a wait by at most 5 s", async () => {
  const { world, waiting, open } = await waitingWorld();
  world.faults[1]?.dropMessages(() => true);
  await open();
  await world.clock.advance(4_000);
  expect(waiting.state).toBe("pending");
  await world.clock.advance(1_010);
  expect(waiting.state).toBe("done");
  await closeSimulated(world);
});

test("a waiter polls as soon as its lost subscription is back", async () => {
  const { world, waiting, open } = await waitingWorld();
  await world.clock.advance(200);
  world.faults[1]?.dropMessages((text) => text.startsWith("latch-open"));
  await open();
  world.faults[1]?.dropSubscription();
  await world.clock.advance(20);
  expect(waiting.state).toBe("done");
  await closeSimulated(world);
});

test("a notification that overtakes the reply to the first request is not missed", async () => {
  const world = await simulateRedis(2);
  const [one, other] = [latchOf(world, 0), latchOf(world, 1)];
  world.faults[1]?.delay({ requestMs: 1, replyMs: 50, messageMs: 1 });
  const waiting = watched(other.wait());
  await world.clock.advance(2);
  const counted = watched(one.countDown());
  await world.clock.advance(120);
  expect([counted.state, waiting.state]).toEqual(["done", "done"]);
  await closeSimulated(world);
});

test("a notification of an earlier latch does not open a later latch of the key", async () => {
  const clock = manualClock();
  const server = new FakeRedis({ clock, random: manualRandom(1), upForMs: 3_600_000 });
  const link = faulty(server.connect(), { clock });
  link.controls.delay({ messageMs: 400 });
  const locks = [server.connect(), link.connection].map((connection, index) =>
    createLocks(redis(connection, { clock, random: manualRandom(index + 2) })),
  );
  const first = watched(latchOf({ locks }, 1, 1, 200).wait({ waitMs: 100 }));
  await clock.advance(1_000); // in this time its subscription is verified
  expect(first.state).toBe("wait-timeout");
  const before = watched(latchOf({ locks }, 1, 1, 200).wait());
  await clock.advance(10);
  await latchOf({ locks }, 0, 1, 200).countDown();
  await clock.advance(250);
  const after = watched(latchOf({ locks }, 1, 2).wait());
  await clock.advance(1_000);
  expect([before.state, after.state]).toEqual(["latch-expired", "pending"]); // the notification came too late for the first
  const closing = Promise.all(locks.map((own) => own.close()));
  await clock.advance(100);
  await closing;
});

test("a waiter is counted while it polls: a dead process is dropped after 15 s", async () => {
  const { world } = await waitingWorld();
  const [observer] = world.locks;
  const waiters = async (): Promise<number> => {
    const counting = observer?.inspect("k");
    await world.clock.advance(10);
    return (await counting)?.waiterCount ?? -1;
  };
  await world.clock.advance(20_000);
  expect(await waiters()).toBe(1);
  world.faults[1]?.freeze();
  await world.clock.advance(16_000);
  expect(await waiters()).toBe(0);
  world.faults[1]?.thaw();
  await world.clock.advance(6_000);
  expect(await waiters()).toBe(1);
  await closeSimulated(world);
});

test("a wait survives a failing engine and ends in time; a count fails with outcome unknown", async () => {
  const world = await simulateRedis(1);
  const own = latchOf(world, 0, 2);
  world.faults[0]?.freeze();
  const waits = [
    watched(own.wait({ waitMs: 700 })),
    watched(own.wait({ waitMs: 0 })),
    watched(own.wait({ waitMs: 5_000 })),
  ];
  const counting = own.countDown({ attemptId: "one" }).catch((error: unknown) => error);
  await world.clock.advance(310);
  expect(waits.map(({ state }) => state)).toEqual(["pending", "engine-unavailable", "pending"]);
  expect(await counting).toMatchObject({ code: "engine-unavailable", outcome: "unknown" });
  await world.clock.advance(400);
  expect(waits[0]?.state).toBe("engine-unavailable");
  world.faults[0]?.thaw();
  const repeated = own.countDown({ attemptId: "one" });
  await world.clock.advance(1_000);
  expect(await repeated).toBe(1);
  await world.clock.advance(4_000);
  expect(waits[2]?.state).toBe("wait-timeout");
  await closeSimulated(world);
});

test("a count whose reply was lost counts once, however often it is sent", async () => {
  const world = await simulateRedis(1);
  let lost = 0;
  world.faults[0]?.dropReply((call) => isCount(call) && (lost += 1) === 1, "reset");
  const counted = latchOf(world, 0, 3).countDown();
  await world.clock.advance(1_000);
  expect(await counted).toBe(2);
  await closeSimulated(world);
});

test("a count that reaches the server after its caller's timeout does not count in the next latch of the key", async () => {
  const world = await simulateRedis(2);
  const round = { locks: world.locks };
  world.faults[1]?.freeze();
  const counting = watched(latchOf(round, 1, 2, 500).countDown());
  await world.clock.advance(1_000);
  expect(counting.state).toBe("engine-unavailable");
  const next = latchOf(round, 0, 2);
  const counted = next.countDown();
  await world.clock.advance(10);
  expect(await counted).toBe(1);
  world.faults[1]?.thaw();
  await world.clock.advance(1_000);
  const left = world.locks[0]?.inspect("k");
  await world.clock.advance(10);
  expect((await left)?.remaining).toBe(1);
  await closeSimulated(world);
});

test("a count that the client library resends after the end of its latch does not count in the next latch", async () => {
  const world = await simulateRedis(2);
  world.faults[1]?.duplicate(isCount, 250);
  const counted = latchOf(world, 1, 2, 150).countDown();
  await world.clock.advance(10);
  expect(await counted).toBe(1);
  await world.clock.advance(190);
  const next = latchOf(world, 0, 2).countDown();
  await world.clock.advance(10);
  expect(await next).toBe(1);
  await world.clock.advance(80); // the count arrives again
  const left = world.locks[0]?.inspect("k");
  await world.clock.advance(10);
  expect((await left)?.remaining).toBe(1);
  await closeSimulated(world);
});

test("a count is not late after the server's clock was set", async () => {
  const clock = manualClock();
  const serverClock = manualClock();
  const server = new FakeRedis({ clock: serverClock, random: manualRandom(1) });
  const locks = createLocks(redis(server.connect(), { clock, random: manualRandom(2) }));
  const own = locks.latch("k", { count: 3, ttlMs });
  expect(await own.countDown()).toBe(2);
  serverClock.jumpWall(30_000);
  const counting = own.countDown();
  await clock.advance(300);
  expect(await counting).toBe(1);
  const closing = locks.close();
  await clock.advance(100);
  await closing;
});

test("a latch that the server lost early has expired for clients that know it", async () => {
  const clock = manualClock();
  const server = new FakeRedis({ clock, random: manualRandom(1) });
  const locks = createLocks(redis(server.connect(), { clock, random: manualRandom(2) }));
  const [own, other] = [locks.latch("k", { count: 3, ttlMs }), locks.latch("k", { count: 3, ttlMs })];
  await Promise.all([own.countDown(), other.countDown()]);
  const waiting = watched(own.wait());
  await clock.advance(10);
  server.flushAll();
  const counting = watched(other.countDown());
  await clock.advance(10);
  expect(counting.state).toBe("latch-expired");
  expect(server.dump("lock:k")).toBeUndefined();
  await clock.advance(6_000);
  expect(waiting.state).toBe("latch-expired");
  const closing = locks.close();
  await clock.advance(100);
  await closing;
});

test("a quorum refuses latches with a reason", async () => {
  const clock = manualClock();
  const servers = [1, 2, 3].map(
    (seed) => new FakeRedis({ clock, random: manualRandom(seed), upForMs: 3_600_000 }),
  );
  const driver: Driver = redlock(
    servers.map((server) => server.connect()),
    { clock, random: manualRandom(9) },
  );
  const locks = createLocks(driver);
  expect(driver.latches).toBeUndefined();
  expect(() => locks.latch("k", { count: 1, ttlMs: 1_000 })).toThrow(/quorum.*latch.*different attempts/);
  await locks.close();
});

test("in memory a latch leaves no timer after its waits and its end", async () => {
  const clock = manualClock();
  const locks = createLocks(memory({ clock, random: manualRandom(1) }));
  const own = locks.latch("k", { count: 1, ttlMs: 500 });
  const waits = [own.wait({ waitMs: 100 }), own.wait(), own.wait({ waitMs: Infinity })].map(watched);
  await clock.advance(200);
  expect(clock.timers(true)).toBe(1); // the timer of the wait of 10 s
  await clock.advance(300);
  expect(waits.map(({ state }) => state)).toEqual(["wait-timeout", "latch-expired", "latch-expired"]);
  expect(clock.timers()).toBe(0);
  await locks.close();
});
