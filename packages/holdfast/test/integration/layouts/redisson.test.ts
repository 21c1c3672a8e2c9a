import { redisson } from "holdfast/redis/layouts";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { faulty } from "holdfast/testing";
import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import { detectConnection } from "../../../src/drivers/redis/clients/detect.ts";
import {
  connect,
  direct,
  newKey,
  onCleanup,
  onSharedRedis,
  shared,
  slackMs,
} from "../../support/fault-fixture.ts";
import { messagesOn, openLayout, otherThread, ownField, soonMs, thread, waitsFor } from "./layout-fixture.ts";

const layout = { layout: redisson };

onSharedRedis("a mutex in the layout of Redisson", () => {
  test("is a hash with one field, the count 1 and the TTL, and each acquisition has its own field", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    const fields = new Set<string>();
    for (let round = 0; round < 2; round += 1) {
      const lease = await locks.acquire(key, { ttlMs: 20_000 });
      const [[field, count], ...others] = Object.entries(await direct.hgetall(key)) as [[string, string]];
      expect([count, others]).toEqual(["1", []]);
      expect(field).toMatch(ownField);
      fields.add(field);
      const ttlMs = await direct.pttl(key);
      expect(ttlMs > 15_000 && ttlMs <= 20_000).toBe(true);
      await lease.release();
      expect(await direct.exists(key)).toBe(0);
    }
    expect(fields.size).toBe(2);
  });

  test("announces its release on the channel of RLock, and to the first living waiter of a fair lock", async () => {
    for (const [key, tag] of [
      [newKey(), undefined],
      [`{${newKey()}}:tagged`, ""],
    ] as const) {
      const tagged = tag === undefined ? `{${key}}` : key;
      const channel = `redisson_lock__channel:${tagged}`;
      const messages = await messagesOn(channel, `${channel}:${thread}`, `${channel}:${otherThread}`);
      const [queue, deadlines] = [`redisson_lock_queue:${tagged}`, `redisson_lock_timeout:${tagged}`];
      await direct.rpush(queue, otherThread, thread);
      await direct.zadd(deadlines, Date.now() - 1_000, otherThread, Date.now() + 60_000, thread);
      await (await openLayout(layout).acquire(key)).release();
      await waitUntil(() => messages.length === 2, "both messages arrive");
      expect(messages).toEqual([
        [channel, "0"],
        [`${channel}:${thread}`, "0"],
      ]);
      expect(await direct.lrange(queue, 0, -1)).toEqual([otherThread, thread]);
      await direct.del(queue, deadlines);
    }
  });

  test("waits for a holder of Redisson, is woken by its message, and changes nothing of it", async () => {
    const key = newKey();
    await redissonHolds(key, 60_000);
    const locks = openLayout(layout);
    expect(await locks.tryAcquire(key)).toBeNull();
    const { error } = await rejection(locks.acquire(key, { waitMs: slackMs }));
    expect(error).toMatchObject({ code: "wait-timeout", holder: { owner: `redisson ${thread}` } });
    const waiting = locks.acquire(key);
    await waitsFor(key, `redisson_lock__channel:{${key}}`);
    expect(await direct.hgetall(key)).toEqual({ [thread]: "1" });
    expect(await direct.pttl(key)).toBeGreaterThan(50_000);
    await direct.del(key);
    const released = performance.now();
    await direct.publish(`redisson_lock__channel:{${key}}`, "0");
    const lease = await waiting;
    expect(performance.now() - released).toBeLessThan(soonMs);
    await lease.release();
  });

  test("wakes one waiter after another, also in several processes", async () => {
    const key = newKey();
    const processes = Array.from({ length: 3 }, () => openLayout(layout));
    await redissonHolds(key, 60_000);
    const served: number[] = [];
    const waits = processes.map((locks, index) => locks.withLock(key, () => served.push(index)));
    await waitsFor(key, `redisson_lock__channel:{${key}}`, 3);
    await waitUntil(async () => (await processes[0]?.inspect(key))?.waiterCount === 3, "all wait");
    const released = performance.now();
    await direct.del(key);
    await direct.publish(`redisson_lock__channel:{${key}}`, "0");
    await Promise.all(waits);
    expect(performance.now() - released).toBeLessThan(3 * soonMs);
    expect(served).toHaveLength(3);
  });

  test("notices the expiry and an unannounced release of a holder", async () => {
    const key = newKey();
    const locks = openLayout(layout);
    await redissonHolds(key, 400);
    const started = performance.now();
    await (await locks.acquire(key)).release();
    expect(performance.now() - started).toBeLessThan(400 + soonMs);
    await redissonHolds(key, 60_000);
    const waiting = locks.acquire(key);
    await waitsFor(key, `redisson_lock__channel:{${key}}`);
    await direct.del(key); // a spin lock does not announce its release
    await (await waiting).release();
  });

  test("a request whose reply is lost gets its own grant, and counts once", async () => {
    const key = newKey();
    const { connection, controls } = faulty(detectConnection(connect(shared.port)));
    const locks = createLocks(redis(connection, layout), { closeTimeoutMs: 1_000 });
    onCleanup(() => locks.close());
    controls.dropReply(1, "reset");
    const lease = await locks.acquire(key, { waitMs: 5_000 });
    expect(Object.values(await direct.hgetall(key))).toEqual(["1"]);
    expect(await locks.checkFence(key, lease.fencingToken)).toBe("current");
    controls.dropReply(1, "reset");
    expect(await lease.release()).toBe(true);
    expect(await direct.exists(key)).toBe(0);
  });

  test("only its own field is extended or released", async () => {
    const key = newKey();
    const lease = await openLayout(layout).acquire(key, { ttlMs: 5_000, renew: false });
    const [field] = await direct.hkeys(key);
    await direct.del(key);
    await redissonHolds(key, 60_000);
    await expect(lease.extend(30_000)).rejects.toMatchObject({ code: "lease-lost", reason: "stolen" });
    expect(await lease.release()).toBe(false);
    expect(await direct.hgetall(key)).toEqual({ [thread]: "1" });
    expect(field).toMatch(ownField);
    await direct.del(key);
  });

  test("inspect and list show holders of both libraries", async () => {
    const prefix = newKey();
    const locks = openLayout(layout);
    await redissonHolds(`${prefix}:theirs`, 60_000);
    await direct.hset(`${prefix}:other hash`, "name", "value");
    await direct.set(`${prefix}:text`, "value");
    const lease = await locks.acquire(`${prefix}:ours`, { owner: "me", reason: "test" });
    const { locks: listed } = await locks.admin.list({ prefix });
    const shown = listed.map(({ key, holders: [holder] }) => [key, holder?.owner, holder?.fencingToken]);
    expect(shown).toHaveLength(2);
    expect(shown).toContainEqual([`${prefix}:ours`, "me", lease.fencingToken]);
    expect(shown).toContainEqual([`${prefix}:theirs`, `redisson ${thread}`, undefined]);
    const { remainingMs, fencingToken, kind } = await locks.inspect(`${prefix}:theirs`);
    expect([fencingToken, kind]).toEqual([null, "mutex"]);
    expect(remainingMs).toBeGreaterThan(50_000);
    await lease.release();
    await direct.del(`${prefix}:theirs`, `${prefix}:other hash`, `${prefix}:text`);
  });

  async function redissonHolds(key: string, ttlMs: number): Promise<void> {
    await direct.hset(key, thread, "1");
    await direct.pexpire(key, ttlMs);
  }
});
