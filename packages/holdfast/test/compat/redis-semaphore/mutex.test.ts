import { createLocks, isLockError } from "holdfast";
import { LostLockError, Mutex, TimeoutError, type LockOptions } from "holdfast/compat/redis-semaphore";
import { redis } from "holdfast/redis";
import type { Redis } from "ioredis";
import * as original from "redis-semaphore";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { onRedis } from "../../support/servers.ts";

let keyCount = 0;

function newKey(): string {
  keyCount += 1;
  return `key-${keyCount}`;
}

onRedis("Mutex of holdfast/compat/redis-semaphore", () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis();
    client = server.client();
  });

  afterAll(() => server.stop());

  function ignoringLoss(options: LockOptions = {}): LockOptions {
    return { ...options, onLockLost: () => undefined };
  }

  test("holds the key mutex:<key> from acquire to release", async () => {
    const key = newKey();
    const mutex = new Mutex(client, key);
    expect(mutex.isAcquired).toBe(false);
    await mutex.acquire();
    expect(mutex.isAcquired).toBe(true);
    expect(await client.pttl(`mutex:${key}`)).toBeGreaterThan(8_000);
    expect(await client.pttl(`mutex:${key}`)).toBeLessThanOrEqual(10_000);
    await mutex.release();
    expect(mutex.isAcquired).toBe(false);
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("rejects with a TimeoutError, or returns false, at the end of the wait", async () => {
    const key = newKey();
    const holder = new Mutex(client, key);
    await holder.acquire();
    const other = new Mutex(client, key, { acquireTimeout: 100 });
    const failure = await other.acquire().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TimeoutError);
    expect((failure as Error).message).toBe(`Acquire mutex mutex:${key} timeout`);
    expect(isLockError((failure as Error).cause, "wait-timeout")).toBe(true);
    expect(await other.tryAcquire()).toBe(false);
    expect(other.isAcquired).toBe(false);
    await other.release(); // no effect
    expect(holder.isAcquired).toBe(true);
    await holder.release();
  });

  test("acquires as soon as the holder has released", async () => {
    const key = newKey();
    const holder = new Mutex(client, key);
    await holder.acquire();
    const acquired = new Mutex(client, key, { acquireTimeout: 20_000, lockTimeout: 30_000 });
    const waiting = acquired.tryAcquire();
    await holder.release();
    expect(await waiting).toBe(true);
    await acquired.release();
  });

  test("tries once with an acquireAttemptsLimit of 1, or an acquireTimeout of 0", async () => {
    const key = newKey();
    const holder = new Mutex(client, key);
    await holder.acquire();
    expect(await new Mutex(client, key, { acquireAttemptsLimit: 1 }).tryAcquire()).toBe(false);
    expect(await new Mutex(client, key, { acquireTimeout: 0 }).tryAcquire()).toBe(false);
    await holder.release();
    const other = new Mutex(client, key, { acquireAttemptsLimit: 1 });
    expect(await other.tryAcquire()).toBe(true);
    await other.release();
  });

  test("limits the wait by the attempts", async () => {
    const key = newKey();
    const holder = new Mutex(client, key);
    await holder.acquire();
    const limited = new Mutex(client, key, {
      acquireAttemptsLimit: 3,
      retryInterval: 50,
      acquireTimeout: 60_000,
    });
    const since = performance.now();
    expect(await limited.tryAcquire()).toBe(false);
    expect(performance.now() - since).toBeGreaterThanOrEqual(90);
    await holder.release();
  });

  test("rejects with the reason of an aborted signal", async () => {
    const key = newKey();
    const holder = new Mutex(client, key);
    await holder.acquire();
    const controller = new AbortController();
    const waiting = new Mutex(client, key).acquire(controller.signal);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(new Mutex(client, key).acquire(controller.signal)).rejects.toBe(reason);
    await holder.release();
  });

  test("renews until its release", async () => {
    const key = newKey();
    const mutex = new Mutex(client, key, ignoringLoss({ lockTimeout: 300 }));
    await mutex.acquire();
    const value = await client.get(`mutex:${key}`);
    let lowest = Infinity;
    let rises = 0;
    await waitUntil(async () => {
      const ttlMs = await client.pttl(`mutex:${key}`);
      rises += ttlMs > lowest ? 1 : 0;
      lowest = ttlMs;
      return rises > 3;
    }, "the TTL rose three times");
    expect(await client.get(`mutex:${key}`)).toBe(value);
    await mutex.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test.each<[string, LockOptions, (mutex: Mutex) => void]>([
    ["after stopRefresh", {}, (mutex) => mutex.stopRefresh()],
    ["with a refreshInterval of 0", { refreshInterval: 0 }, () => undefined],
  ])("expires without a report %s", async (_, options, afterAcquire) => {
    const key = newKey();
    const onLockLost = vi.fn();
    const mutex = new Mutex(client, key, { lockTimeout: 200, onLockLost, ...options });
    await mutex.acquire();
    afterAcquire(mutex);
    expect(mutex.isAcquired).toBe(true);
    await waitUntil(async () => (await client.exists(`mutex:${key}`)) === 0, "the lock has expired");
    await waitUntil(async () => !mutex.isAcquired, "the mutex knows its end");
    await mutex.release();
    expect(onLockLost).not.toHaveBeenCalled();
    expect(await mutex.tryAcquire()).toBe(true);
    await mutex.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("calls onLockLost once, with the mutex as this, when another program has the key", async () => {
    const key = newKey();
    const calls: [unknown, boolean, unknown][] = [];
    const mutex = new Mutex(client, key, {
      lockTimeout: 300,
      onLockLost(error) {
        calls.push([this, this.isAcquired, error]);
      },
    });
    await mutex.acquire();
    await client.set(`mutex:${key}`, "another");
    await waitUntil(async () => calls.length > 0, "the loss is reported");
    const error = calls[0]?.[2] as LostLockError;
    expect(calls).toEqual([[mutex, false, error]]);
    expect(error).toBeInstanceOf(LostLockError);
    expect(error.message).toBe(`Lost mutex for key mutex:${key}`);
    expect(isLockError(error.cause, "lease-lost")).toBe(true);
    await mutex.release();
    expect(await client.get(`mutex:${key}`)).toBe("another");
    await client.del(`mutex:${key}`);
    await mutex.acquire();
    await mutex.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("without onLockLost a loss is an unhandled rejection", async () => {
    const key = newKey();
    const rejections: unknown[] = [];
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    process.on("unhandledRejection", (reason) => rejections.push(reason));
    try {
      const mutex = new Mutex(client, key, { lockTimeout: 300 });
      await mutex.acquire();
      await client.del(`mutex:${key}`);
      await waitUntil(async () => rejections.length > 0, "the loss is reported");
      expect(rejections).toEqual([expect.any(LostLockError)]);
      expect(mutex.isAcquired).toBe(false);
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const listener of others) {
        process.on("unhandledRejection", listener);
      }
    }
  });

  test("one object may serve callers one after another, also parallel ones", async () => {
    const mutex = new Mutex(client, newKey(), { acquireTimeout: 30_000 });
    let inside = 0;
    const work = async (): Promise<void> => {
      await mutex.acquire();
      inside += 1;
      expect(inside).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      await mutex.release();
    };
    await Promise.all(Array.from({ length: 20 }, work));
    expect(mutex.isAcquired).toBe(false);
  });

  test("a late release of a lost lock does not release that of the next caller of the object", async () => {
    const key = newKey();
    const mutex = new Mutex(client, key, ignoringLoss({ lockTimeout: 300, acquireTimeout: 30_000 }));
    await mutex.acquire();
    const next = mutex.acquire();
    await client.del(`mutex:${key}`); // the first caller loses the lock
    await next;
    await mutex.release(); // the first caller's
    expect(mutex.isAcquired).toBe(true);
    await mutex.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("a new acquire after a loss needs one release only", async () => {
    const key = newKey();
    const mutex = new Mutex(client, key, ignoringLoss({ lockTimeout: 300 }));
    await mutex.acquire();
    await client.del(`mutex:${key}`);
    await waitUntil(async () => !mutex.isAcquired, "the lock is lost");
    await mutex.acquire();
    await mutex.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("excludes Mutex of redis-semaphore, native locks of the same key, and is excluded by both", async () => {
    const key = newKey();
    const native = createLocks(redis(client, { prefix: "mutex:" }));
    const [old, own] = [new original.Mutex(client, key), new Mutex(client, key)];
    const impatient = { acquireTimeout: 50 };
    const ownTry = (): Promise<boolean> => new Mutex(client, key, impatient).tryAcquire();
    await own.acquire();
    expect(await new original.Mutex(client, key, impatient).tryAcquire()).toBe(false);
    expect(await native.tryAcquire(key)).toBeNull();
    await own.release();
    await old.acquire();
    expect(await ownTry()).toBe(false);
    expect(await native.tryAcquire(key)).toBeNull();
    await old.release();
    const lease = await native.acquire(key);
    expect(await ownTry()).toBe(false);
    await lease.release();
    await native.close();
  });

  test("objects of one client share its connections", async () => {
    const own = server.client();
    await own.ping();
    const waiters = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const key = newKey();
        await new original.Mutex(client, key, { lockTimeout: 300, refreshInterval: 0 }).acquire();
        const mutex = new Mutex(own, key);
        await mutex.acquire();
        return mutex;
      }),
    );
    const { host, port } = own.options;
    expect([host, port]).toEqual(["127.0.0.1", server.port]);
    const connections = String(await client.client("LIST"))
      .trim()
      .split("\n").length;
    expect(connections).toBeLessThan(8);
    await Promise.all(waiters.map((mutex) => mutex.release()));
  });
});
