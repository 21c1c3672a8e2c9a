import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Lease, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import { counterKey } from "../../../../src/drivers/redis/protocol/keys.ts";

// One server. A lease goes from one caller of a process to another through the server.

const ttlMs = 30_000;
const withoutHandover = { handover: { max: 0, maxMs: 0 } };

let clock: ManualClock;
let server: FakeRedis;
let made: number;

beforeEach(() => {
  clock = manualClock({ now: 1_000 });
  server = new FakeRedis({ clock, random: manualRandom(1) });
  made = 0;
});

test("the next caller of the process gets the lock by the reply of the release, without a notification", async () => {
  const locks = await process(withoutHandover);
  const held = await within(10, locks.acquire("k", { ttlMs }));
  const next = locks.acquire("k", { ttlMs });
  await pass(10);
  server.failPublish(true);
  await within(10, held.release());
  const lease = await within(10, next);
  expect(lease.fencingToken).toBeGreaterThan(held.fencingToken);
  expect(lease.remainingMs()).toBeGreaterThan(ttlMs * 0.9);
});

test.each([ttlMs, 2_000])(
  "other processes soon see the reason of a caller that got the lock from the queue, with a TTL of %i ms",
  async (ownTtlMs) => {
    const [locks, others] = [await process(withoutHandover), await process()];
    for (const [here, next] of [
      [locks, locks],
      [others, locks],
    ] as const) {
      const held = await within(10, here.acquire("k", { ttlMs }));
      const waiting = next.acquire("k", { ttlMs: ownTtlMs, reason: "maintenance" });
      await pass(10);
      await within(10, held.release());
      const lease = await within(10, waiting);
      await pass(10);
      const { holders } = await within(10, others.inspect("k"));
      expect(holders).toMatchObject([{ reason: "maintenance" }]);
      expect(await within(10, lease.release())).toBe(true);
    }
  },
);

test("a release with a next caller is not refused by a full queue: the others get their turn, and then the next caller", async () => {
  const locks = await process(withoutHandover, { maxQueue: 1 });
  const others = await process({}, { maxQueue: 1 });
  const held = await within(10, locks.acquire("k", { ttlMs }));
  const other = others.acquire("k", { ttlMs });
  await pass(10);
  const next = locks.acquire("k", { ttlMs });
  await pass(10);
  await within(10, held.release());
  await within(10, (await within(10, other)).release());
  expect((await within(10, next)).key).toBe("k");
});

test("a lease that another process has adopted and releases goes to a caller of its maker by notification", async () => {
  const [maker, adopter] = [await process(), await process()];
  const held = await within(10, maker.acquire("k", { ttlMs }));
  const next = maker.acquire("k", { ttlMs });
  await pass(10);
  const adopted = await within(10, adopter.adopt(held.transfer()));
  await pass(100); // the next caller is queued now
  await within(10, adopted.release());
  expect((await within(50, next)).fencingToken).toBeGreaterThan(held.fencingToken);
});

test("while the server's counter is far ahead of its time no number is used twice", async () => {
  const [locks, others] = [await process(), await process()];
  server.set(counterKey(), String((clock.wall() + 3_600_000) * 1_000));
  const tokens: bigint[] = [];
  const use = async (own: Locks): Promise<void> => {
    const lease: Lease = await own.acquire("k", { ttlMs });
    tokens.push(lease.fencingToken);
    await lease.release();
  };
  const uses = [locks, others, locks, locks, others, locks].map(use);
  await within(1_000, Promise.all(uses));
  expect(new Set(tokens).size).toBe(uses.length);
});

async function process(options?: LocksOptions, settings?: RedisOptions): Promise<Locks> {
  made += 1;
  const random = manualRandom(made);
  const locks = createLocks(redis(server.connect(), { clock, random, ...settings }), options);
  await within(100, locks.inspect("k"));
  return locks;
}

/** Time passes in steps small enough that requests get their replies in between. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5) {
    await clock.advance(Math.min(5, left));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let isLate = true;
  const done = (): void => {
    isLate = false;
  };
  promise.then(done, done);
  await pass(ms);
  if (isLate) {
    throw new Error(`not settled within ${ms} ms`);
  }
  return promise;
}
