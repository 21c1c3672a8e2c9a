import { createLocks, type Driver, type Locks } from "holdfast";
import { redis, type RedisClient, type RedisLayout } from "holdfast/redis";
import * as layouts from "holdfast/redis/layouts";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import { clientLibraries, type ClientLibrary, type OpenClient } from "../../support/clients.ts";
import { onRedis } from "../../support/servers.ts";
import { clientConformance, wholeConformance } from "../../support/conformance.ts";

/** One layout of each type of value runs the whole suite. The others have the same script, but for a few lines. */
const setups: readonly [RedisLayout, ClientLibrary, typeof wholeConformance, prefix?: string][] = [
  [layouts.redisson, "ioredis 6", wholeConformance],
  [layouts.redissonFenced, "node-redis 5", clientConformance, "fenced:"],
  [layouts.spring, "node-redis 6", wholeConformance, "registry:"],
  [layouts.pythonRedisLock, "ioredis 5", clientConformance],
  [layouts.shedLock, "node-redis 4", clientConformance],
];

onRedis("drivers with the layouts of other libraries", () => {
  let server: RedisServer;
  const clients = new Map<RedisLayout, OpenClient[]>();

  beforeAll(async () => {
    server = await startRedis();
    for (const [layout, library] of setups) {
      const open = clientLibraries[library];
      clients.set(layout, [await open(server.port), await open(server.port)]);
    }
  });

  afterAll(async () => {
    for (const client of [...clients.values()].flat()) {
      client.close();
    }
    await server.stop();
  });

  describe.concurrent("pass the conformance suite:", () => {
    for (const [layout, library, conformance, prefix] of setups) {
      describe.concurrent(`${layout.name} by ${library}:`, () => {
        conformance({
          test,
          open: async () => {
            const [one, other] = (clients.get(layout) ?? []).map(({ client }) => client) as [
              RedisClient,
              RedisClient,
            ];
            const [driver, another] = [redis(one, { layout, prefix }), redis(other, { layout, prefix })];
            const keepers = await Promise.all([driver, another].map(subscribed));
            return {
              driver,
              other: another,
              cleanup: async () => {
                await Promise.all(keepers.map((locks) => locks.close()));
              },
            };
          },
        });
      });
    }
  });

  test("leave only keys that expire, and counters", async () => {
    const probe = server.client();
    const left = [];
    for (const key of await probe.keys("*")) {
      if (
        (await probe.pttl(key)) === -1 &&
        key !== "holdfast:fence" &&
        !key.startsWith("redisson_lock_token:")
      ) {
        left.push(key);
      }
    }
    expect(left).toEqual([]);
  });
});

/** Keeps a driver open that is subscribed, because a break is reported at once only from then on. */
async function subscribed(driver: Driver): Promise<Locks> {
  const locks = createLocks(driver);
  await locks.withLock(`subscribes ${driver.random.id()}`, () => undefined);
  await vi.waitFor(
    async () => {
      expect((await locks.admin.nodes())[0]?.notifications).toBe("verified");
    },
    { interval: 5 },
  );
  return locks;
}
