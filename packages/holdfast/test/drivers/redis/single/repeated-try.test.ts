import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, type Locks } from "holdfast";
import { redis, type Connection } from "holdfast/redis";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { beforeEach, expect, test } from "vitest";

import { commandText } from "../../../support/diagnostics-log.ts";

// A try gets its result from one reply. Another request of the same try may still be on its way.

const ttlMs = 30_000;
const lockKey = "lock:k";
/** A request is not executed later than this after its sending: `commandTimeoutMs` plus 3 s. */
const latestMs = 5_000;

let clock: ManualClock;
let server: FakeRedis;
let others: Locks;

beforeEach(async () => {
  clock = manualClock({ now: 1_000 });
  server = new FakeRedis({ clock, random: manualRandom(1) });
  others = await opened(server.connect(), 3);
});

test("a try that was repeated over a new connection leaves no grant of its first request", async () => {
  const connection = server.connect();
  let execute: (() => Promise<unknown>) | undefined;
  const resetsOnce: Connection = altered(connection, (call, send) => {
    if (execute || commandText(call[2])[0] !== "acquire") {
      return send();
    }
    execute = send;
    return Promise.reject(new Error("Connection is closed."));
  });
  const locks = await opened(resetsOnce, 2);
  const lease = await within(10, others.acquire("k", { ttlMs }));
  expect(await within(1_000, locks.tryAcquire("k", { ttlMs }))).toBeNull();
  expect(await within(10, lease.release())).toBe(true);
  void execute?.();
  await clock.advance(10);
  expect(server.get(lockKey)).not.toBeNull();
  await clock.advance(latestMs + 1_000);
  expect(server.get(lockKey)).toBeNull();
});

test("a request that is executed after the expiry of its lease leaves no grant", async () => {
  let execute: (() => void) | undefined;
  let lateNumber: unknown;
  const delaysOnce: Connection = altered(server.connect(), async (call, send) => {
    if (execute || commandText(call[2])[0] !== "acquire") {
      return send();
    }
    await new Promise<void>((resolve) => {
      execute = resolve;
    });
    lateNumber = await send(); // the short reply of a grant
    return lateNumber;
  });
  const locks = await opened(delaysOnce, 2);
  const lease = await within(2_500, locks.acquire("k", { ttlMs: 1_000, renew: false, waitMs: 10_000 }));
  lease.throwIfLost();
  await clock.advance(2_200);
  expect(server.get(lockKey)).toBeNull();
  execute?.();
  await clock.advance(10);
  expect(lateNumber).toBeGreaterThan(Number(lease.fencingToken)); // it was granted the lock
  expect(server.get(lockKey)).toBeNull();
});

test("a try whose requests were all refused by the server sends no clean-up", async () => {
  const operations: string[] = [];
  const refusing: Connection = altered(server.connect(), (call, send) => {
    const [name = ""] = commandText(call[2]);
    operations.push(name);
    return name === "acquire"
      ? Promise.reject(new Error("LOADING Redis is loading the dataset in memory"))
      : send();
  });
  const locks = await opened(refusing, 2);
  await expect(within(3_000, locks.tryAcquire("k", { ttlMs }))).rejects.toMatchObject({
    code: "engine-unavailable",
    outcome: "none",
  });
  await clock.advance(latestMs);
  expect(operations).not.toContain("release");
});

test("a request that the script refuses for a moment is sent again", async () => {
  let refusals = 0;
  const refusesOnce: Connection = altered(server.connect(), async (call, send) => {
    if (refusals > 0 || commandText(call[2])[0] !== "acquire") {
      return send();
    }
    refusals += 1;
    return [await send(), ["error", "LOADING Redis is loading the dataset in memory"]];
  });
  const locks = await opened(refusesOnce, 2);
  await within(2_000, locks.acquire("k", { ttlMs, waitMs: 1_000 }));
  expect(refusals).toBe(1);
});

test("a malformed reply does not leave the caller without a result", async () => {
  const malformed: Connection = altered(server.connect(), async (call, send) => {
    const reply = await send();
    return commandText(call[2])[0] === "acquire" ? [(reply as unknown[])[0]] : reply;
  });
  const locks = await opened(malformed, 2);
  await expect(within(5_000, locks.acquire("k", { ttlMs, waitMs: 1_000 }))).rejects.toMatchObject({
    code: "engine-unavailable",
  });
});

type Call = Parameters<Connection["run"]>;

/** A connection with other replies to its scripts. */
function altered(
  connection: Connection,
  run: (call: Call, send: () => Promise<unknown>) => Promise<unknown>,
): Connection {
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: (...call) => run(call, () => connection.run(...call)),
    command: (...call) => connection.command(...call),
    subscribe: (...call) => connection.subscribe(...call),
    onDown: (listener) => connection.onDown(listener),
  };
}

async function opened(connection: Connection, seed: number): Promise<Locks> {
  const locks = createLocks(redis(connection, { clock, random: manualRandom(seed) }));
  await within(100, locks.inspect("k"));
  return locks;
}

/** The result of a promise that settles within simulated time. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  for (let left = ms; left > 0; left -= 5) {
    await clock.advance(5);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  return promise;
}
