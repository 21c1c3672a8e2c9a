import { isLockError } from "holdfast";
import { MultiSemaphore, Semaphore, TimeoutError } from "holdfast/compat/redis-semaphore";
import type { Redis } from "ioredis";
import * as original from "redis-semaphore";
import { limitMs, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { onRedis } from "../../support/servers.ts";

const patient = { acquireTimeout: 30_000 } as const;
const impatient = { acquireTimeout: 50 } as const;
let keyCount = 0;

onRedis("semaphores of holdfast/compat/redis-semaphore", () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis();
    client = server.client();
  });

  afterAll(() => server.stop());

  function newKey(): string {
    keyCount += 1;
    return `semaphore-${keyCount}`;
  }

  test("admit at most limit holders", async () => {
    const key = newKey();
    const [first, second] = [1, 2].map(() => new Semaphore(client, key, 2, patient));
    const third = new Semaphore(client, key, 2, impatient);
    await first?.acquire();
    await second?.acquire();
    expect([first?.isAcquired, second?.isAcquired]).toEqual([true, true]);
    const failure = await third.acquire().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TimeoutError);
    expect((failure as Error).message).toBe(`Acquire semaphore semaphore:${key} timeout`);
    await first?.release();
    const next = new Semaphore(client, key, 2, patient);
    expect(await next.tryAcquire()).toBe(true);
    await Promise.all([second?.release(), next.release()]);
    expect([first?.isAcquired, next.isAcquired]).toEqual([false, false]);
  });

  test("count the permits of a MultiSemaphore, together with a Semaphore", async () => {
    const key = newKey();
    const three = new MultiSemaphore(client, key, 4, 3, patient);
    await three.acquire();
    expect(await new MultiSemaphore(client, key, 4, 2, impatient).tryAcquire()).toBe(false);
    const one = new Semaphore(client, key, 4, patient);
    expect(await one.tryAcquire()).toBe(true);
    expect(await new Semaphore(client, key, 4, impatient).tryAcquire()).toBe(false);
    await three.release();
    const two = new MultiSemaphore(client, key, 4, 2, patient);
    expect(await two.tryAcquire()).toBe(true);
    await Promise.all([one.release(), two.release()]);
  });

  test("one object counts each parallel acquire", async () => {
    const key = newKey();
    const semaphore = new Semaphore(client, key, 2, { acquireTimeout: limitMs(500) });
    await Promise.all([semaphore.acquire(), semaphore.acquire()]);
    expect(await semaphore.tryAcquire()).toBe(false);
    await semaphore.release();
    expect(semaphore.isAcquired).toBe(true);
    expect(await semaphore.tryAcquire()).toBe(true);
    await Promise.all([semaphore.release(), semaphore.release()]);
    expect(semaphore.isAcquired).toBe(false);
  });

  test("expire without renewal", async () => {
    const key = newKey();
    const onLockLost = vi.fn();
    const options = { lockTimeout: 200, refreshInterval: 0, onLockLost };
    await new Semaphore(client, key, 1, options).acquire();
    const next = new Semaphore(client, key, 1, { acquireTimeout: 30_000 });
    await next.acquire();
    await next.release();
    expect(onLockLost).not.toHaveBeenCalled();
  });

  test("report a loss", async () => {
    const key = newKey();
    const onLockLost = vi.fn();
    const semaphore = new Semaphore(client, key, 2, { lockTimeout: 300, onLockLost });
    await semaphore.acquire();
    await client.del(`holdfast-semaphore:${key}`);
    await waitUntil(async () => onLockLost.mock.calls.length > 0, "the loss is reported");
    expect(onLockLost.mock.calls[0]?.[0]).toMatchObject({
      message: `Lost semaphore for key semaphore:${key}`,
    });
    expect(semaphore.isAcquired).toBe(false);
    await semaphore.release();
  });

  test("refuse another limit while in use", async () => {
    const key = newKey();
    const semaphore = new Semaphore(client, key, 2);
    await semaphore.acquire();
    await expect(new Semaphore(client, key, 3).acquire()).rejects.toMatchObject({ code: "limit-mismatch" });
    await semaphore.release();
  });

  test("refuse a key that redis-semaphore uses", async () => {
    const key = newKey();
    const old = new original.Semaphore(client, key, 5);
    await old.acquire();
    const semaphore = new Semaphore(client, key, 5);
    const refusal = await semaphore.tryAcquire().catch((error: unknown) => error);
    expect(isLockError(refusal, "kind-mismatch")).toBe(true);
    expect((refusal as Error).message).toContain(`"semaphore:${key}"`);
    await old.release();
    expect(await semaphore.tryAcquire()).toBe(true);
    await semaphore.release();
  });

  test.each([
    ["Semaphore", (key: string) => new original.Semaphore(client, key, 5)],
    ["MultiSemaphore", (key: string) => new original.MultiSemaphore(client, key, 5, 1)],
  ])("make %s of redis-semaphore fail", async (_, createOld) => {
    const key = newKey();
    const semaphore = new Semaphore(client, key, 5);
    await semaphore.acquire();
    await expect(createOld(key).acquire()).rejects.toThrow("WRONGTYPE");
    await semaphore.release();
    await expect(createOld(key).acquire()).rejects.toThrow("WRONGTYPE");
    expect(await client.pttl(`semaphore:${key}`)).toBeGreaterThan(50_000);
  });

  test("leave a string of another program as it is", async () => {
    const key = newKey();
    await client.set(`semaphore:${key}`, "data");
    await expect(new Semaphore(client, key, 5).acquire()).rejects.toMatchObject({ code: "kind-mismatch" });
    expect([await client.get(`semaphore:${key}`), await client.pttl(`semaphore:${key}`)]).toEqual([
      "data",
      -1,
    ]);
  });

  test("respect the key prefix of the client", async () => {
    const key = newKey();
    const prefixed = server.client({ keyPrefix: "app:" });
    const semaphore = new Semaphore(prefixed, key, 1, patient);
    await semaphore.acquire();
    expect(await client.exists(`app:semaphore:${key}`, `app:holdfast-semaphore:${key}`)).toBe(2);
    const other = new Semaphore(client, key, 1, patient);
    expect(await other.tryAcquire()).toBe(true);
    await Promise.all([semaphore.release(), other.release()]);
  });
});
