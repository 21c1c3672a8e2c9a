import { faulty } from "holdfast/testing";
import { expect, test } from "vitest";
import { rejection, timeFactor, waitUntil } from "@holdfast/test-kit";

import { detectConnection } from "../../../src/drivers/redis/clients/detect.ts";
import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  shared,
  slackMs,
  warmUp,
} from "../../support/fault-fixture.ts";

const thread = "1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b:57";
const observe = { observe: ["redisson"] } as const;
/** Without polls of its own a waiter would notice the release after 5 s. */
const soonMs = 2_500 * timeFactor;

onSharedRedis("a lock of Redisson", () => {
  async function redissonHolds(key: string, ttlMs: number): Promise<void> {
    await direct.hset(`lock:${key}`, thread, "1");
    await direct.pexpire(`lock:${key}`, ttlMs);
  }

  test("is an error without `observe`", async () => {
    const key = newKey();
    await redissonHolds(key, 60_000);
    const locks = open(connect(shared.port));
    await expect(locks.acquire(key)).rejects.toMatchObject({ code: "kind-mismatch" });
    await expect(locks.inspect(key)).rejects.toMatchObject({ code: "kind-mismatch" });
    await direct.del(`lock:${key}`);
  });

  test("is held, and has a holder", async () => {
    const key = newKey();
    await redissonHolds(key, 60_000);
    const locks = open(connect(shared.port), observe);
    expect(await locks.tryAcquire(key)).toBeNull();
    const { holders, kind, remainingMs } = await locks.inspect(key);
    expect(holders).toEqual([{ owner: `redisson ${thread}`, remainingMs: expect.any(Number) as number }]);
    expect(kind).toBe("mutex");
    expect(remainingMs).toBeGreaterThan(30_000);
    const { error } = await rejection(locks.acquire(key, { waitMs: slackMs }));
    expect(error).toMatchObject({ code: "wait-timeout", holder: { owner: `redisson ${thread}` } });
    expect(await direct.hgetall(`lock:${key}`)).toEqual({ [thread]: "1" });
    await direct.del(`lock:${key}`);
  });

  test("is awaited until its release or its expiry", async () => {
    const locks = open(connect(shared.port), observe);
    await warmUp(locks);
    const key = newKey();
    await redissonHolds(key, 60_000);
    const before = await polls();
    const waiting = locks.acquire(key);
    await waitUntil(async () => (await polls()) > before + 1, "the waiter polls");
    const released = performance.now();
    await direct.del(`lock:${key}`);
    expect(await (await waiting).release()).toBe(true);
    expect(performance.now() - released).toBeLessThan(soonMs);
    await redissonHolds(key, 500);
    expect(await (await locks.acquire(key)).release()).toBe(true);
  });

  test("is awaited although the first reads of it fail, and a wait without any read is an error of the engine", async () => {
    const key = newKey();
    await redissonHolds(key, 60_000);
    const { connection, controls } = faulty(detectConnection(connect(shared.port)));
    const locks = open(connection, observe);
    await warmUp(locks);
    let lost = 0;
    controls.dropReply(({ script }) => script === "foreign-lock" && ++lost <= 2, "reset");
    const waiting = locks.acquire(key);
    await waitUntil(() => lost > 2, "the waiter reads the lock again");
    await direct.del(key, `lock:${key}`);
    expect(await (await waiting).release()).toBe(true);
    await redissonHolds(key, 60_000);
    controls.dropReply(({ script }) => script === "foreign-lock", "reset");
    const started = performance.now();
    const { error } = await rejection(locks.acquire(key, { waitMs: 400 }));
    expect(error).toMatchObject({ code: "engine-unavailable", key });
    expect(performance.now() - started).toBeGreaterThan(390);
    expect((await rejection(locks.tryAcquire(key))).error).toMatchObject({ code: "engine-unavailable" });
    controls.dropReply(0);
    await direct.del(`lock:${key}`);
  });

  test("whose waiter aborts or is closed ends the wait at once", async () => {
    const key = newKey();
    await redissonHolds(key, 60_000);
    const locks = open(connect(shared.port), observe);
    const caller = new AbortController();
    const before = await polls();
    const aborted = rejection(locks.acquire(key, { signal: caller.signal }));
    await waitUntil(async () => (await polls()) > before, "the waiter polls");
    caller.abort("no longer needed");
    expect((await aborted).error).toBe("no longer needed");
    const closed = rejection(locks.acquire(key));
    await locks.close();
    expect((await closed).error).toMatchObject({ code: "closed" });
    await direct.del(`lock:${key}`);
  });

  test("is not confused with another hash", async () => {
    const key = newKey();
    await direct.hset(`lock:${key}`, "field", "1");
    const locks = open(connect(shared.port), observe);
    await expect(locks.acquire(key)).rejects.toMatchObject({ code: "kind-mismatch" });
    await expect(locks.inspect(key)).rejects.toMatchObject({ code: "kind-mismatch" });
    await direct.del(`lock:${key}`);
  });

  /** How often keys were scanned by the script that reads other libraries' locks. */
  async function polls(): Promise<number> {
    return Number(/cmdstat_hscan:calls=(\d+)/.exec(await direct.info("commandstats"))?.[1] ?? 0);
  }
});

test("`observe` accepts known libraries only", async () => {
  const { redis } = await import("holdfast/redis");
  expect(() => redis(connect(1), { observe: ["jedis" as "redisson"] })).toThrow(
    /`observe`.*any of: redisson/,
  );
});
