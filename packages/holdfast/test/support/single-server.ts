import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { redis, type Connection, type RedisOptions } from "holdfast/redis";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { beforeEach } from "vitest";

export let clock: ManualClock;
export let server: FakeRedis;
let made: number;

/** One simulated server with its own clock for each test of the file. */
export function onSingleServer(): void {
  beforeEach(() => {
    clock = manualClock({ now: 1_000 });
    server = new FakeRedis({ clock, random: manualRandom(1) });
    made = 0;
  });
}

/** A process whose server is known, with a verified subscription. */
export async function process(
  connection: Connection = server.connect(),
  options?: LocksOptions,
  settings?: RedisOptions,
): Promise<Locks> {
  made += 1;
  const random = manualRandom(10 + made);
  const locks = createLocks(redis(connection, { clock, random, ...settings }), options);
  await within(100, locks.inspect("k"));
  return locks;
}

/** Time passes in steps small enough that requests get their replies in between. */
export async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5) {
    await clock.advance(Math.min(5, left));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** The result of a promise that must settle within that time. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
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
