import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { createLocks, type Lease, type Locks } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { manualRandom } from "holdfast/testing";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { systemRandom, type Random } from "../../../../src/runtime/random.ts";
import { onRedis } from "../../../support/servers.ts";

// Two clones of one virtual machine draw the same random numbers. Their tokens may share the random part,
// because only a whole token is compared.

onRedis("two processes that draw the same random numbers", () => {
  let servers: readonly RedisServer[];
  const opened: Locks[] = [];

  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  });

  afterAll(async () => {
    await Promise.all(opened.map((locks) => locks.close()));
    await Promise.all(servers.map((server) => server.stop()));
  });

  /** `client` is the id of the clone. All later draws are the same for every clone. */
  function clone(engine: string, client: string): Locks {
    const source = manualRandom(1);
    let drawn = 0;
    const random: Random = {
      id: () => ((drawn += 1) === 1 ? client : source.id()),
      nextFloat: () => source.nextFloat(),
    };
    const clients = servers.map((server) => server.client());
    const first = clients[0] as (typeof clients)[0];
    const locks = createLocks(
      engine === "one server" ? redis(first, { random }) : redlock(clients, { random, restartGuard: "off" }),
    );
    opened.push(locks);
    return locks;
  }

  test.each(["one server", "a quorum"])("never hold a lock at once: %s", async (engine) => {
    const key = randomUUID();
    const [here, there] = [clone(engine, systemRandom.id()), clone(engine, systemRandom.id())];
    for (const lock of [
      (locks: Locks) => locks.mutex(key),
      (locks: Locks) => locks.readWrite(`${key}:rw`).write,
    ]) {
      const lease = await lock(here).acquire();
      expect(await lock(there).tryAcquire()).toBeNull();
      const waiting = lock(there).acquire({ waitMs: 10_000 });
      expect(await lease.release()).toBe(true);
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      expect(await lock(here).tryAcquire()).toBeNull();
      expect(await next.release()).toBe(true);
    }
  });

  // Only tries: a waiter is granted by notification. A clone with the same client id receives that notification
  // and releases the grant.
  test("are distinguished by the moment of their tries, even if their client ids are the same", async () => {
    const key = randomUUID();
    const client = systemRandom.id();
    const [here, there] = [clone("one server", client), clone("one server", client)];
    // The two may notice each other and separate at any moment. Their grants and requests are then left to
    // expire.
    const lease = await here.acquire(key, { ttlMs: 1_000 });
    expect(await there.tryAcquire(key)).toBeNull();
    await lease.release().catch(() => false);
    const next = await there.acquire(key, { ttlMs: 1_000 });
    const refused = await here.tryAcquire(key);
    expect(refused === null || refused.fencingToken > next.fencingToken).toBe(true);
    await Promise.all([next.release().catch(() => false), refused?.release()]);
  });

  test.each(["one server", "a quorum"])(
    "with one channel leave the grants of each other alone: %s",
    async (engine) => {
      const key = randomUUID();
      const id = systemRandom.id();
      const [here, there] = [clone(engine, id), clone(engine, id)];
      const holder = clone(engine, systemRandom.id());
      for (const locks of [here, there]) {
        await locks.withLock(`${key}:first`, () => undefined);
        await waitUntil(
          async () => (await locks.admin.nodes()).every((node) => node.notifications === "verified"),
          "notifications are verified",
        );
      }
      const held = await holder.acquire(key);
      const waiting = [];
      for (const [index, locks] of [here, there].entries()) {
        waiting.push(locks.acquire(key, { waitMs: 20_000 }));
        await waitUntil(
          async () => (await holder.inspect(key)).waiterCount === index + 1,
          "the waiter is queued",
        );
      }
      const granted: Lease[] = [];
      for (const lease of waiting) {
        void lease.then((one) => granted.push(one));
      }
      expect(await held.release()).toBe(true);
      await waitUntil(() => granted.length > 0, "one waiter has the lock");
      await pause(500); // enough for a release by the other and the next grant
      expect(granted).toHaveLength(1);
      expect(await granted[0]?.release()).toBe(true);
      await waitUntil(() => granted.length === 2, "the other has the lock afterwards");
      await pause(500);
      expect(await granted[1]?.release()).toBe(true);
    },
  );
});
