import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { redis, redlock, type RedisOptions } from "holdfast/redis";
import * as layouts from "holdfast/redis/layouts";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { direct, newKey, onCleanup, onSharedRedis, shared } from "../../support/fault-fixture.ts";

const { pythonRedisLock, redisson, redissonFenced, shedLock, spring } = layouts;

describe("the option `layout`", () => {
  let client: Redis;
  beforeAll(() => {
    client = new Redis({ lazyConnect: true });
  });
  afterAll(() => {
    client.disconnect();
  });

  test.each<[RedisOptions, RegExp]>([
    [{ layout: "redisson" as never }, /`layout` to be a layout of holdfast\/redis\/layouts, got "redisson"/],
    [{ layout: redisson, minReplicas: 1 }, /`layout` to be given without `minReplicas` and `observe`/],
    [{ layout: redisson, observe: ["redisson"] }, /`layout` to be given without `minReplicas` and `observe`/],
    [{ layout: redisson, prefix: "holdfast:" }, /`prefix`.*reserved/],
    [{ layout: spring }, /`prefix` to be given, because the layout "spring" has no default/],
    [
      { layout: spring, prefix: "registry" },
      /`prefix` to be the registry key of Spring and a colon, got "registry"/,
    ],
    [{ layout: pythonRedisLock, prefix: "app:" }, /`prefix` to be a text that begins with "lock:"/],
  ])("is refused with %o", (options, message) => {
    expect(() => redis(client, options)).toThrow(message);
  });

  test("is refused for a quorum and for a cluster", () => {
    expect(() => redlock([client], { layout: redisson } as never)).toThrow(
      /`layout` to be given to `redis` only, because a quorum needs its own layout/,
    );
    const cluster = new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true });
    expect(() => redis(cluster, { layout: redisson })).toThrow(
      expect.objectContaining({
        code: "unsupported",
        message: expect.stringContaining("`layout`") as string,
      }),
    );
    cluster.disconnect();
  });

  test("names the reason for which a kind is unsupported", async () => {
    const kinds = [
      [redisson, "semaphore", /RSemaphore records no holders/],
      [redissonFenced, "read-write", /Redisson has fencing tokens for a mutex only/],
      [shedLock, "latch", /ShedLock has mutexes only/],
    ] as const;
    for (const [layout, kind, reason] of kinds) {
      await using locks = createLocks(redis(client, { layout }));
      const use = {
        semaphore: () => locks.semaphore("key", { limit: 2 }),
        "read-write": () => locks.readWrite("key"),
        latch: () => locks.latch("key", { count: 1, ttlMs: 1_000 }),
      };
      const message = expect.stringMatching(reason) as string;
      expect(use[kind]).toThrow(expect.objectContaining({ code: "unsupported", key: "key", message }));
    }
  });

  test("of connect accepts the names of all layouts, and no other", () => {
    for (const { name } of Object.values(layouts)) {
      expect(() => connect("redis://127.0.0.1?layout=jedis")).toThrow(name);
    }
    expect(() => connect("redlock://a,b,c?layout=redisson")).toThrow(/`layout` in the query/);
  });
});

onSharedRedis("a URL with a layout", () => {
  test("opens a driver with this layout", async () => {
    const key = newKey();
    for (const [layout, type, lock] of [
      ["redisson", "hash", key],
      ["redisson-fenced", "hash", key],
      ["python-redis-lock", "string", `lock:${key}`],
      ["shedlock", "string", `job-lock:default:${key}`],
      ["spring&prefix=registry:", "string", `registry:${key}`],
    ] as const) {
      const locks = createLocks(await connect(`redis://127.0.0.1:${shared.port}?layout=${layout}`));
      onCleanup(() => locks.close());
      const lease = await locks.acquire(key);
      expect(await direct.type(lock), layout).toBe(type);
      await lease.release();
    }
  });
});
