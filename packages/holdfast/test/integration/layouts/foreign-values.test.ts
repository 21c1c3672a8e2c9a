import type { Locks } from "holdfast";
import { pythonRedisLock, redisson, redissonFenced, shedLock, spring } from "holdfast/redis/layouts";
import { expect, test } from "vitest";
import { rejection } from "@holdfast/test-kit";

import { direct, newKey, onSharedRedis } from "../../support/fault-fixture.ts";
import { openLayout, thread } from "./layout-fixture.ts";

const hashes = [redisson, redissonFenced].map((layout) => ({ layout, prefix: "hash:" }));
const strings = [
  { layout: spring, prefix: "text:" },
  { layout: pythonRedisLock, prefix: "lock:text:" },
  { layout: shedLock, prefix: "text:" },
];
const largeSize = 20_000_000;

/** Values of other programs: the command that writes one, without its key. */
const otherTypes: Readonly<Record<string, readonly string[]>> = {
  set: ["SADD", "a"],
  list: ["RPUSH", "a"],
  zset: ["ZADD", "1", "1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b:1"],
  stream: ["XADD", "*", "mode", "read"],
};

onSharedRedis("a value of another program", () => {
  for (const options of [...hashes, ...strings]) {
    const isHash = hashes.some(({ layout }) => layout === options.layout);
    const { name } = options.layout;

    test(`that has another type is another kind of lock, and stays (${name})`, async () => {
      const locks = openLayout(options);
      const values = {
        ...otherTypes,
        ...(isHash ? { string: ["SET", "1"] } : { hash: ["HSET", thread, "1"] }),
      };
      for (const [type, [command = "", ...args]] of Object.entries(values)) {
        const key = newKey();
        const lock = options.prefix + key;
        await direct.call(command, lock, ...args);
        for (const call of [
          () => locks.tryAcquire(key),
          () => locks.acquire(key),
          () => locks.inspect(key),
        ]) {
          expect((await rejection(call())).error, type).toMatchObject({ code: "kind-mismatch", key });
        }
        await expectUntouched(locks, key, lock);
        expect(await direct.type(lock)).toBe(type);
        await direct.del(lock);
      }
    });

    test(`that replaces a held lock ends the lease, and stays (${name})`, async () => {
      const locks = openLayout(options);
      for (const [command = "", ...args] of Object.values(otherTypes)) {
        const key = newKey();
        const lock = options.prefix + key;
        const lease = await locks.acquire(key, { renew: false });
        await direct.del(lock);
        await direct.call(command, lock, ...args);
        expect(await locks.checkFence(key, lease.fencingToken)).toBe("stale");
        expect(await locks.admin.breakLock(key, { fencingToken: lease.fencingToken, reason: "test" })).toBe(
          false,
        );
        expect((await rejection(lease.extend())).error).toMatchObject({
          code: "lease-lost",
          reason: "stolen",
        });
        expect(await lease.release()).toBe(false);
        expect(await direct.exists(lock)).toBe(1);
        await direct.del(lock);
      }
    });
  }

  for (const options of strings) {
    test(`of any size and without expiry is held (${options.layout.name})`, async () => {
      const locks = openLayout(options);
      const values = [
        "",
        "\u0000\n{}[]\"'",
        Buffer.from([0xff, 0xfe, 0x00, 0xc3]),
        "ADDED:",
        "x".repeat(largeSize),
      ];
      for (const value of values) {
        const key = newKey();
        const lock = options.prefix + key;
        await direct.set(lock, value);
        expect(await locks.tryAcquire(key)).toBeNull();
        const { holders, remainingMs, fencingToken } = await locks.inspect(key);
        expect([holders.length, remainingMs, fencingToken]).toEqual([1, null, null]);
        expect(holders[0]?.owner.length).toBeLessThan(200);
        await expectUntouched(locks, key, lock);
        expect(await direct.strlen(lock)).toBe(Buffer.byteLength(value));
        await direct.del(lock);
      }
    });
  }

  for (const options of hashes) {
    test(`of any size and without expiry is held, or of another kind (${options.layout.name})`, async () => {
      const locks = openLayout(options);
      const [held, other, mode] = [newKey(), newKey(), newKey()];
      await direct.eval(
        "for i = 1, 200000 do redis.call('HSET', KEYS[1], string.format('1f3a2b4c-0d5e-4f60-8a7b-%012x:1', i), i) end",
        1,
        options.prefix + held,
      );
      expect(await locks.tryAcquire(held)).toBeNull();
      const { holders, remainingMs } = await locks.inspect(held);
      expect([holders.length, remainingMs]).toEqual([100, null]);
      await direct.hset(options.prefix + other, "name", "x".repeat(largeSize));
      await direct.hset(options.prefix + mode, "mode", "dark");
      for (const key of [other, mode]) {
        await expect(locks.tryAcquire(key)).rejects.toMatchObject({ code: "kind-mismatch" });
        await expect(locks.inspect(key)).rejects.toMatchObject({ code: "kind-mismatch" });
      }
      for (const key of [held, other, mode]) {
        await expectUntouched(locks, key, options.prefix + key);
      }
      expect(await direct.hlen(options.prefix + held)).toBe(200_000);
      await direct.unlink(held, ...[held, other, mode].map((key) => options.prefix + key));
    });
  }

  /** Neither a break nor a check of any number finds a holder of this library. */
  async function expectUntouched(locks: Locks, key: string, lock: string): Promise<void> {
    expect(await locks.admin.breakLock(key, { fencingToken: 1n, reason: "test" })).toBe(false);
    expect(await locks.checkFence(key, 1n)).toBe("stale");
    expect(await direct.pttl(lock)).toBe(-1);
  }
});
