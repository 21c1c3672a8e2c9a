import { createLocks, type Lease, type Locks } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { pythonRedisLock, redisson, redissonFenced, shedLock, spring } from "holdfast/redis/layouts";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import type { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { onRedis } from "../support/servers.ts";

interface Setup {
  readonly name: string;
  readonly servers?: number;
  readonly hasReaders?: boolean;
  open(clients: readonly Redis[]): Locks;
}

const ttlMs = 1_000;
const layouts = [
  [redisson, undefined],
  [redissonFenced, "fenced:"],
  [spring, "registry:"],
  [pythonRedisLock, undefined],
  [shedLock, undefined],
] as const;

const setups: readonly Setup[] = [
  { name: "one server", hasReaders: true, open: ([client]) => createLocks(redis(client as Redis)) },
  {
    name: "a quorum",
    servers: 3,
    hasReaders: true,
    open: (clients) => createLocks(redlock([...clients], { restartGuard: "off" })),
  },
  ...layouts.map(([layout, prefix]) => ({
    name: `the layout ${layout.name}`,
    hasReaders: layout === redisson,
    open: ([client]: readonly Redis[]) => createLocks(redis(client as Redis, { layout, prefix })),
  })),
];

/** Another program removed the TTL of a key: PERSIST, or RESTORE with the TTL 0. */
onRedis("A lock key that lost its TTL", () => {
  describe.each(setups)("on $name", ({ servers: count = 1, hasReaders = false, open }) => {
    let servers: RedisServer[];
    let clients: Redis[];
    let opened: Locks[];

    beforeEach(async () => {
      servers = await Promise.all(Array.from({ length: count }, () => startRedis()));
      clients = servers.map((server) => server.client());
      opened = [];
    });

    afterEach(async () => {
      await Promise.all(opened.map((locks) => locks.close()));
      await Promise.all(servers.map((server) => server.stop()));
    });

    function process(): Locks {
      const locks = open(clients);
      opened.push(locks);
      return locks;
    }

    /** The keys without a TTL that name the lock. Readers of Redisson have a key each. */
    async function persistent(key: string): Promise<string[]> {
      const found = [];
      for (const client of clients) {
        for (const name of await client.keys(`*${key}*`)) {
          if ((await client.pttl(name)) === -1 && !name.startsWith("redisson_lock_token:")) {
            found.push(name);
          }
        }
      }
      return found;
    }

    async function persist(key: string): Promise<void> {
      for (const client of clients) {
        for (const name of await client.keys(`*${key}*`)) {
          await client.persist(name);
        }
      }
      expect((await persistent(key)).length).toBeGreaterThanOrEqual(count);
    }

    const kinds: Record<string, (locks: Locks) => Promise<Lease>> = {
      mutex: (locks) => locks.acquire("mine", { ttlMs }),
      ...(hasReaders
        ? {
            reader: (locks) => locks.readWrite("mine").read.acquire({ ttlMs }),
            writer: (locks) => locks.readWrite("mine").write.acquire({ ttlMs }),
          }
        : {}),
    };

    for (const [kind, acquire] of Object.entries(kinds)) {
      test(`gets it from the next renewal of its ${kind}`, async () => {
        const locks = process();
        const lease = await acquire(locks);
        await persist("mine");
        await waitUntil(async () => (await persistent("mine")).length === 0, "the keys have TTLs again");
        expect(lease.remainingMs()).toBeLessThanOrEqual(ttlMs);
        expect(await lease.release()).toBe(true);
      });
    }

    test("gets it from the process that adopts the lease", async () => {
      const lease = await process().acquire("given", { ttlMs, renew: false });
      const serialized = lease.transfer();
      await persist("given");
      const adopted = await process().adopt(serialized);
      expect(adopted.remainingMs()).toBeGreaterThan(0);
      expect(adopted.remainingMs()).toBeLessThanOrEqual(ttlMs);
      await waitUntil(async () => (await persistent("given")).length === 0, "the keys have TTLs again");
      expect(await adopted.release()).toBe(true);
    });
  });
});
