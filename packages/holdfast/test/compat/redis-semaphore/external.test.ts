import {
  Mutex,
  RedlockMutex,
  Semaphore,
  TimeoutError,
  type LockOptions,
} from "holdfast/compat/redis-semaphore";
import type { Redis } from "ioredis";
import * as original from "redis-semaphore";
import { startLongUp, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { onLongUpRedis } from "../../support/servers.ts";

const scheduled = { lockTimeout: 20_000, refreshInterval: 0 } as const;
let keyCount = 0;

onLongUpRedis("a mutex that is acquired in one process and continued in another", () => {
  let servers: RedisServer[];
  let client: Redis;
  let other: Redis;

  beforeAll(async () => {
    servers = await Promise.all([0, 1, 2].map(() => startLongUp()));
    [client, other] = [(servers[0] as RedisServer).client(), (servers[0] as RedisServer).client()];
  });

  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });

  function newKey(): string {
    keyCount += 1;
    return `external-${keyCount}`;
  }

  function handler(key: string, identifier: string, options: LockOptions = {}): Mutex {
    return new Mutex(other, key, { identifier, acquiredExternally: true, ...options });
  }

  test.each<[string, LockOptions]>([
    ["a generated identifier", scheduled],
    ["its own identifier", { ...scheduled, identifier: "job-1" }],
    ["an identifier with a suffix", { ...scheduled, identifierSuffix: "host-1" }],
  ])("continues by %s", async (_, options) => {
    const key = newKey();
    const scheduler = new Mutex(client, key, options);
    const continued = handler(key, scheduler.identifier);
    await scheduler.acquire();
    await continued.acquire();
    expect(continued.isAcquired).toBe(true);
    expect(await new Mutex(client, key, { acquireTimeout: 0 }).tryAcquire()).toBe(false);
    await continued.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
    await scheduler.release(); // no effect
    await continued.acquire(); // no longer external
    await continued.release();
  });

  test("continues by externallyAcquiredIdentifier, and renews", async () => {
    const key = newKey();
    const scheduler = new Mutex(client, key, { ...scheduled, lockTimeout: 1_000 });
    await scheduler.acquire();
    const externallyAcquiredIdentifier = scheduler.identifier;
    const continued = new Mutex(other, key, { externallyAcquiredIdentifier, lockTimeout: 30_000 });
    await continued.acquire();
    expect(await client.pttl(`mutex:${key}`)).toBeGreaterThan(25_000);
    await continued.release();
  });

  test("continues a mutex for which the scheduler waited", async () => {
    const key = newKey();
    const before = new Mutex(other, key);
    await before.acquire();
    const scheduler = new Mutex(client, key, scheduled);
    const waiting = scheduler.acquire();
    await before.release();
    await waiting;
    expect(await client.pttl(`mutex:${key}`)).toBeGreaterThan(15_000);
    const continued = handler(key, scheduler.identifier, scheduled);
    await continued.acquire();
    await continued.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("the scheduler may release what it acquired", async () => {
    const key = newKey();
    const scheduler = new Mutex(client, key, scheduled);
    await scheduler.acquire();
    expect(scheduler.isAcquired).toBe(true);
    await scheduler.release();
    expect(scheduler.isAcquired).toBe(false);
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("a release without an acquire releases the other's mutex", async () => {
    const key = newKey();
    const scheduler = new Mutex(client, key, scheduled);
    await scheduler.acquire();
    await handler(key, scheduler.identifier).release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("does not acquire a free mutex, or that of another identifier", async () => {
    const key = newKey();
    await expect(handler(key, "absent").acquire()).rejects.toThrow(TimeoutError);
    const holder = new Mutex(client, key, scheduled);
    await holder.acquire();
    expect(await handler(key, "absent").tryAcquire()).toBe(false);
    await handler(key, "absent").release(); // no effect
    expect(await client.exists(`mutex:${key}`)).toBe(1);
    await holder.release();
    const renewed = new Mutex(client, key, { identifier: "renewed" });
    await renewed.acquire();
    expect(await handler(key, "renewed").tryAcquire()).toBe(false); // only without renewal
    await renewed.release();
  });

  test("refuses to continue a mutex of redis-semaphore, and is not continued by it", async () => {
    const key = newKey();
    const old = new original.Mutex(client, key, scheduled);
    await old.acquire();
    await expect(handler(key, old.identifier).acquire()).rejects.toMatchObject({ code: "unsupported" });
    await old.release();
    const scheduler = new Mutex(client, key, scheduled);
    await scheduler.acquire();
    const oldHandler = new original.Mutex(other, key, {
      identifier: scheduler.identifier,
      acquiredExternally: true,
    });
    expect(await oldHandler.tryAcquire()).toBe(false);
    await scheduler.release();
  });

  test("works on a quorum", async () => {
    const key = newKey();
    const clients = servers.map((server) => server.client());
    const scheduler = new RedlockMutex(clients, key, scheduled);
    await scheduler.acquire();
    const { identifier } = scheduler;
    const others = servers.map((server) => server.client());
    const continued = new RedlockMutex(others, key, { identifier, acquiredExternally: true });
    await continued.acquire();
    expect(continued.isAcquired).toBe(true);
    await continued.release();
    expect(await client.exists(`mutex:${key}`)).toBe(0);
  });

  test("a semaphore is refused", async () => {
    const options = { identifier: "a", acquiredExternally: true } as const;
    const semaphore = new Semaphore(client, newKey(), 2, options);
    await expect(semaphore.acquire()).rejects.toMatchObject({ code: "unsupported" });
  });
});
