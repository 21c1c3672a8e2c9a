import { hostname } from "node:os";

import { pythonRedisLock, redissonFenced, shedLock, spring } from "holdfast/redis/layouts";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { direct, newKey, onSharedRedis } from "../../support/fault-fixture.ts";
import { messagesOn, openLayout, ownField, soonMs, thread, waitsFor } from "./layout-fixture.ts";

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

onSharedRedis("a lock in the layout of", () => {
  test("Spring has the UUID of a registry, and its release publishes the whole key on both channels", async () => {
    const key = newKey();
    const lock = `registry:${key}`;
    const channels = [`registry-channel:${lock}`, "registry-channel"] as const;
    const messages = await messagesOn(...channels);
    const lease = await openLayout({ layout: spring, prefix: "registry:" }).acquire(key, { ttlMs: 20_000 });
    expect(await direct.get(lock)).toMatch(uuid);
    expect(await direct.pttl(lock)).toBeGreaterThan(15_000);
    await lease.release();
    await waitUntil(() => messages.length === 2, "both messages arrive");
    expect(messages).toEqual(channels.map((channel) => [channel, lock]));
  });

  test("Spring wakes waiters by the message of either version", async () => {
    const key = newKey();
    const lock = `registry:${key}`;
    const locks = openLayout({ layout: spring, prefix: "registry:" });
    for (const channel of [`registry-channel:${lock}`, "registry-channel"]) {
      await direct.set(lock, "1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b", "PX", 60_000);
      const waiting = locks.acquire(key);
      await waitsFor(lock, `registry-channel:${lock}`);
      await direct.del(lock);
      const released = performance.now();
      await direct.publish(channel, lock);
      await (await waiting).release();
      expect(performance.now() - released).toBeLessThan(soonMs);
    }
  });

  test("python-redis-lock has a value of text, and its release fills the signal", async () => {
    const key = newKey();
    const lease = await openLayout({ layout: pythonRedisLock }).acquire(key);
    expect(await direct.get(`lock:${key}`)).toMatch(/^[\da-f]{32}$/);
    expect(await direct.exists(`lock-signal:${key}`)).toBe(0);
    const blocked = direct.duplicate();
    const signal = blocked.blpop(`lock-signal:${key}`, 10);
    await waitUntil(
      async () => (await direct.info("clients")).includes("blocked_clients:1"),
      "a waiter blocks",
    );
    await lease.release();
    expect(await signal).toEqual([`lock-signal:${key}`, "1"]);
    blocked.disconnect();
    await (await openLayout({ layout: pythonRedisLock }).acquire(key)).release();
    expect(await direct.lrange(`lock-signal:${key}`, 0, -1)).toEqual(["1"]);
    const ttlMs = await direct.pttl(`lock-signal:${key}`);
    expect(ttlMs > 0 && ttlMs <= 1_000).toBe(true);
  });

  test("ShedLock names the time, the host and a UUID", async () => {
    const key = newKey();
    const locks = openLayout({ layout: shedLock });
    const before = Date.now();
    const lease = await locks.acquire(key);
    const value = (await direct.get(`job-lock:default:${key}`)) ?? "";
    const [, time = "", host, id] = /^ADDED:(.+Z)@(.+):([^:]+)$/.exec(value) ?? [];
    expect(host).toBe(hostname());
    expect(id).toMatch(uuid);
    expect(Date.parse(time)).toBeGreaterThanOrEqual(before - 1);
    const transferred = lease.transfer();
    const adopted = await openLayout({ layout: shedLock }).adopt(transferred); // its values have another time
    expect(await adopted.release()).toBe(true);
  });

  test.each([
    [{ layout: spring, prefix: "text:" }, "1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b"],
    [{ layout: pythonRedisLock, prefix: "lock:text:" }, "1f3a2b4c0d5e4f608a7b9c0d1e2f3a4b"],
    [
      { layout: shedLock, prefix: "text:" },
      "ADDED:2026-01-01T00:00:00.000Z@host:1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b",
    ],
  ])("$layout.name is extended and released by its holder only", async (options, foreign) => {
    const key = newKey();
    const lock = options.prefix + key;
    const lease = await openLayout(options).acquire(key, { renew: false });
    await direct.set(lock, foreign, "PX", 60_000);
    expect((await openLayout(options).inspect(key)).holders[0]?.owner).toBe(
      `${options.layout.name} ${foreign}`,
    );
    await expect(lease.extend()).rejects.toMatchObject({ code: "lease-lost", reason: "stolen" });
    expect(await lease.release()).toBe(false);
    expect(await direct.get(lock)).toBe(foreign);
    expect(await direct.pttl(lock)).toBeGreaterThan(50_000);
    await direct.del(lock);
  });

  test("RFencedLock counts the fencing tokens of both libraries", async () => {
    const key = newKey();
    const counter = `redisson_lock_token:{${key}}`;
    const locks = openLayout({ layout: redissonFenced });
    const first = await locks.acquire(key);
    expect([first.fencingToken, await direct.get(counter)]).toEqual([1n, "1"]);
    expect(Object.keys(await direct.hgetall(key))[0]).toMatch(ownField);
    await first.release();
    await direct.incr(counter); // a grant of Redisson
    await direct.hset(key, thread, "1");
    expect(await locks.tryAcquire(key)).toBeNull();
    expect(await direct.get(counter)).toBe("2");
    await direct.del(key);
    const next = await locks.acquire(key);
    expect(next.fencingToken).toBe(3n);
    expect(await locks.checkFence(key, 3n)).toBe("current");
    expect(await locks.checkFence(key, 1n)).toBe("stale");
    await next.release();
    expect(await direct.pttl(counter)).toBe(-1);
  });
});
