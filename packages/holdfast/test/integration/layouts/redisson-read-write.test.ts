import { redisson } from "holdfast/redis/layouts";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/test-kit";

import { direct, newKey, onSharedRedis } from "../../support/fault-fixture.ts";
import { messagesOn, openLayout, soonMs, thread, waitsFor } from "./layout-fixture.ts";

const layout = { layout: redisson };
const writerField = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:1:write$/;

onSharedRedis("a read-write lock in the layout of Redisson", () => {
  test("has a field and a timer for each reader, and expires with the longest", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    const channel = `redisson_rwlock:{${key}}`;
    const messages = await messagesOn(channel);
    const long = await locks.readWrite(key).read.acquire({ ttlMs: 20_000, renew: false });
    const short = await locks.readWrite(key).read.acquire({ ttlMs: 5_000, renew: false });
    const { mode, ...readers } = await direct.hgetall(key);
    expect(mode).toBe("read");
    expect(Object.values(readers)).toEqual(["1", "1"]);
    const timers = Object.keys(readers).map((field) => `{${key}}:${field}:rwlock_timeout:1`);
    expect(await direct.mget(...timers)).toEqual(["1", "1"]);
    const ttls = await Promise.all(timers.map((timer) => direct.pttl(timer)));
    expect(Math.max(...ttls)).toBeGreaterThan(15_000);
    expect(Math.min(...ttls)).toBeLessThanOrEqual(5_000);
    expect(await direct.pttl(key)).toBeGreaterThan(15_000);
    await long.release();
    expect(await direct.pttl(key)).toBeLessThanOrEqual(5_000);
    expect(messages).toEqual([]);
    await short.release();
    expect(await direct.exists(key, ...timers)).toBe(0);
    await waitUntil(() => messages.length === 1, "the release is announced");
    expect(messages).toEqual([[channel, "0"]]);
  });

  test("has the field of a writer, whose release and downgrade wake all waiters", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    const messages = await messagesOn(`redisson_rwlock:{${key}}`);
    const writer = await locks.readWrite(key).write.acquire();
    const { mode, ...writers } = await direct.hgetall(key);
    expect([mode, Object.values(writers)]).toEqual(["write", ["1"]]);
    expect(Object.keys(writers)[0]).toMatch(writerField);
    await writer.downgrade();
    const field = Object.keys(writers)[0]?.replace(":write", "") as string;
    expect(await direct.hgetall(key)).toEqual({ mode: "read", [field]: "1" });
    expect(await direct.pttl(`{${key}}:${field}:rwlock_timeout:1`)).toBeGreaterThan(20_000);
    await writer.release();
    await (await locks.readWrite(key).write.acquire()).release();
    await waitUntil(() => messages.length === 3, "all messages arrive");
    expect(messages.map(([, text]) => text)).toEqual(["1", "0", "1"]);
  });

  test("readers of both libraries share it, and only own fields change", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    const timer = await redissonReads(key, 60_000);
    const reader = await locks.readWrite(key).read.acquire({ ttlMs: 5_000, renew: false });
    expect(await locks.readWrite(key).write.tryAcquire()).toBeNull();
    expect(
      (await locks.inspect(key)).holders.map(({ owner, mode }) => [owner.split(" ")[0], mode]),
    ).toContainEqual(["redisson", "read"]);
    expect(await direct.pttl(key)).toBeGreaterThan(50_000);
    expect(await reader.release()).toBe(true);
    expect(await direct.hgetall(key)).toEqual({ mode: "read", [thread]: "1" });
    expect(await direct.pttl(key)).toBeGreaterThan(50_000);
    const writing = locks.readWrite(key).write.acquire();
    await waitsFor(key, `redisson_rwlock:{${key}}`);
    await direct.del(key, timer);
    const released = performance.now();
    await direct.publish(`redisson_rwlock:{${key}}`, "0");
    await (await writing).release();
    expect(performance.now() - released).toBeLessThan(soonMs);
  });

  test("a reader without expiry keeps the lock, also after a release here", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    await direct.hset(key, "mode", "read", thread, "1");
    await direct.set(`{${key}}:${thread}:rwlock_timeout:1`, "1");
    await (await locks.readWrite(key).read.acquire()).release();
    expect(await direct.hgetall(key)).toEqual({ mode: "read", [thread]: "1" });
    expect(await direct.pttl(key)).toBe(-1);
    await direct.del(key, `{${key}}:${thread}:rwlock_timeout:1`);
  });

  test("a writer of Redisson excludes readers, and an RLock excludes both sides", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    await direct.hset(key, "mode", "write", `${thread}:write`, "1");
    await direct.pexpire(key, 60_000);
    expect(await locks.readWrite(key).read.tryAcquire()).toBeNull();
    expect((await locks.inspect(key)).holders[0]?.mode).toBe("write");
    await expect(locks.tryAcquire(key)).rejects.toMatchObject({ code: "kind-mismatch" });
    await direct.del(key);
    await direct.hset(key, thread, "1");
    await expect(locks.readWrite(key).read.tryAcquire()).rejects.toMatchObject({ code: "kind-mismatch" });
    await expect(locks.readWrite(key).write.tryAcquire()).rejects.toMatchObject({ code: "kind-mismatch" });
    expect(await direct.hgetall(key)).toEqual({ [thread]: "1" });
    await direct.del(key);
  });

  test("has a TTL of at most 30 s, because a renewal of Redisson sets the expiry of the whole lock", async () => {
    const key = newKey();
    const { read, write } = openLayout(layout).readWrite(key);
    for (const side of [read, write]) {
      await expect(side.acquire({ ttlMs: 30_001 })).rejects.toMatchObject({ code: "unsupported", key });
      const lease = await side.acquire({ ttlMs: 10_000, renew: false });
      await lease.extend(60_000);
      expect(lease.remainingMs()).toBeLessThanOrEqual(30_000);
      expect(await direct.pttl(key)).toBeLessThanOrEqual(30_000);
      await lease.release();
    }
  });

  async function redissonReads(key: string, ttlMs: number): Promise<string> {
    const timer = `{${key}}:${thread}:rwlock_timeout:1`;
    await direct.hset(key, "mode", "read", thread, "1");
    await direct.pexpire(key, ttlMs);
    await direct.set(timer, "1", "PX", ttlMs);
    return timer;
  }
});
