import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { createLocks, type Lease, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { rejection, startRedis, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../support/servers.ts";
import { contended } from "../../../src/testing/conformance/fixture.ts";

let server: RedisServer;
let direct: Redis;
let opened: Locks[] = [];
let keys = 0;

function newKey(): string {
  keys += 1;
  return `fencing:${keys}`;
}

/** A client that the server regards as another process. */
function open(driverOptions?: RedisOptions, options?: LocksOptions): Locks {
  const locks = createLocks(redis(server.client(), driverOptions), options);
  opened.push(locks);
  return locks;
}

/** The number of a grant that is then released. */
async function numberOf(locks: Locks, key: string): Promise<bigint> {
  const lease = await locks.acquire(key);
  await lease.release();
  return lease.fencingToken;
}

async function serverMicros(): Promise<bigint> {
  const [seconds = 0, micros = 0] = await direct.time();
  return BigInt(seconds) * 1_000_000n + BigInt(micros);
}

/** Sets the server's counter ahead of its time until the test ends, as after its clock stepped back. */
async function counterInAnHour(): Promise<bigint> {
  const inAnHour = (await serverMicros()) + 3_600_000_000n;
  await direct.set("holdfast:fence", inAnHour.toString());
  onTestFinished(() => void direct.del("holdfast:fence"));
  return inAnHour;
}

function expectRising(numbers: readonly bigint[]): void {
  const broken = numbers.findIndex((number, index) => index > 0 && number <= (numbers[index - 1] as bigint));
  expect(broken === -1 ? undefined : { broken, at: numbers.slice(broken - 1, broken + 1) }).toBeUndefined();
}

onRedis("fencing tokens on a real server", () => {
  beforeAll(async () => {
    server = await startRedis();
    direct = server.client();
  });

  afterEach(async () => {
    await Promise.all(opened.map((locks) => locks.close()));
    opened = [];
    expect(await direct.keys("lock:*")).toEqual([]);
    expect(await direct.keys("holdfast:queue:*")).toEqual([]);
  });

  afterAll(async () => {
    await server.stop();
  });

  test("rise from release to grant, within a process and between processes", async () => {
    const key = newKey();
    const processes = [open(), open()] as const;
    const numbers: bigint[] = [];
    for (let turn = 0; turn < 20; turn += 1) {
      numbers.push(await numberOf(processes[turn % 2] as Locks, key));
    }
    expectRising(numbers);
  });

  test("have as many digits as the server wrote, and begin at its time", async () => {
    const key = newKey();
    const before = await serverMicros();
    const lease = await open().acquire(key);
    const after = await serverMicros();
    expect(lease.fencingToken.toString()).toBe((await direct.get(`lock:${key}`))?.split(" ")[1]);
    expect(lease.fencingToken >= before && lease.fencingToken <= after).toBe(true);
  });

  test("rise over an expiry", async () => {
    const key = newKey();
    const [here, there] = [open(), open()];
    const lease = await here.acquire(key, { ttlMs: 100, renew: false });
    const next = await there.acquire(key);
    expectRising([lease.fencingToken, next.fencingToken]);
  });

  test("rise over FLUSHALL, though the lock was held", async () => {
    const key = newKey();
    const [here, there] = [open({}, { handover: { max: 100 } }), open()];
    const numbers = [await numberOf(here, key)];
    numbers.push((await contended(here, key)).fencingToken);
    await direct.flushall();
    numbers.push(await numberOf(there, key), await numberOf(here, key));
    expectRising(numbers);
  });

  test("rise one by one from the last number, though the server's clock stepped back", async () => {
    const key = newKey();
    const locks = open({}, { handover: false });
    const inAnHour = await counterInAnHour();
    const numbers = [await numberOf(locks, key), await numberOf(open({}, { handover: false }), key)];
    expect(numbers).toEqual([inAnHour + 1n, inAnHour + 2n]);
  });

  test("are given one by one while the counter is ahead of the time, whatever is requested", async () => {
    const key = newKey();
    const [many, one] = [open({}, { handover: { max: 60 } }), open({}, { handover: false })];
    const inAnHour = await counterInAnHour();
    const lease = await contended(many, key);
    await lease.release();
    expect(lease.fencingToken).toBe(inAnHour + 2n);
    expect(await numberOf(one, key)).toBe(inAnHour + 3n);
  });

  test("rise on each key though the counter is one for all", async () => {
    const [a, b] = [newKey(), newKey()];
    const locks = open();
    expectRising([await numberOf(locks, a), await numberOf(locks, b), await numberOf(locks, a)]);
    expect(await direct.keys(`*${a}*`)).toEqual([]); // a released key leaves no record
  });

  test.each(["forged", `${Date.now() + 2 * 86_400_000}000`])(
    "are refused where the counter says %s, by an error that names its key",
    async (text) => {
      await direct.set("holdfast:fence", text);
      onTestFinished(() => void direct.del("holdfast:fence"));
      const { error } = await rejection(open().acquire(newKey(), { waitMs: 20_000 }));
      expect(error).toMatchObject({ code: "engine-unavailable", outcome: "none", retryable: false });
      expect(String(error)).toContain(`holdfast:fence has ${text}`);
    },
  );

  test("rise by one from holder to holder within a process", async () => {
    const key = newKey();
    const locks = open();
    const first = await contended(locks, key);
    const waiting = [0, 1, 2, 3].map(() => locks.acquire(key));
    const numbers = [first.fencingToken];
    await first.release();
    for (const next of waiting) {
      const lease = await next;
      numbers.push(lease.fencingToken);
      await lease.release();
    }
    expect(numbers).toEqual(numbers.map((_, index) => first.fencingToken + BigInt(index)));
  });

  test("of a run of handovers rise over its loss as well", async () => {
    const key = newKey();
    const [here, there] = [open(), open()];
    const first = await contended(here, key);
    const second = here.acquire(key);
    await first.release();
    const handed = await second;
    await direct.del(`lock:${key}`);
    const numbers = [first.fencingToken, handed.fencingToken, await numberOf(there, key)];
    expectRising(numbers);
    expect(await handed.release()).toBe(false);
  });

  test("a repeat of an attempt has the same number, and its release is followed by a larger one", async () => {
    const key = newKey();
    const here = open();
    const [one, repeat] = [
      await here.acquire(key, { attemptId: "order-5" }),
      await here.acquire(key, { attemptId: "order-5" }),
    ];
    expect(repeat.fencingToken).toBe(one.fencingToken);
    await Promise.all([repeat.release(), one.release()]);
    expectRising([one.fencingToken, await numberOf(here, key)]);
  });

  test("no number is used for two leases, and all rise in the order of the grants, under contention", async () => {
    const key = newKey();
    const handovers: unknown[] = [];
    const listen = (message: unknown): void => void handovers.push(message);
    subscribe("holdfast:handover", listen);
    const numbers: bigint[] = [];
    const byProcess = [0, 0, 0];
    const processes = [open(), open({}, { handover: { max: 3 } }), open({}, { handover: false })];
    const work = async (locks: Locks, index: number): Promise<void> => {
      while (numbers.length < 4_000) {
        const lease: Lease = await locks.acquire(key, { waitMs: 20_000 });
        numbers.push(lease.fencingToken);
        byProcess[index] = (byProcess[index] ?? 0) + 1;
        await lease.release();
      }
    };
    try {
      await Promise.all(
        processes.flatMap((locks, index) => Array.from({ length: 8 }, () => work(locks, index))),
      );
    } finally {
      unsubscribe("holdfast:handover", listen);
    }
    expectRising(numbers);
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(handovers.length).toBeGreaterThan(500);
    expect(Math.min(...byProcess)).toBeGreaterThan(50);
  });
});
