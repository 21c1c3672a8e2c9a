import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { createLocks, type Lease, type Locks } from "holdfast";
import { redis, redlock } from "holdfast/redis";
import { manualRandom } from "holdfast/testing";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { systemRandom, type Random } from "../../../../src/runtime/random.ts";
import { onRedis } from "../../../support/servers.ts";

// Two clones of one virtual machine draw the same random numbers. A token is compared as a whole, so the first part of it, which is
// random, may be the same.

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

  /** Its client id is its own unless it is the same; all that it draws behind that is the same. */
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

  // Only without waiting: who waits is granted by message, and a clone with the same client id hears it and gives it back.
  test("are told apart by the moment of their tries, where even their client ids are the same", async () => {
    const key = randomUUID();
    const client = systemRandom.id();
    const [here, there] = [clone("one server", client), clone("one server", client)];
    // At any moment the two may hear each other and part: what is held, or is under way, is left to its TTL.
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
          async () => (await locks.nodes()).every((node) => node.notifications === "verified"),
          "it hears",
        );
      }
      const held = await holder.acquire(key);
      const waiting = [];
      for (const [index, locks] of [here, there].entries()) {
        waiting.push(locks.acquire(key, { waitMs: 20_000 }));
        await waitUntil(async () => (await holder.inspect(key)).waiterCount === index + 1, "it waits");
      }
      const granted: Lease[] = [];
      for (const lease of waiting) {
        void lease.then((one) => granted.push(one));
      }
      expect(await held.release()).toBe(true);
      await waitUntil(() => granted.length > 0, "one is granted");
      await pause(500); // enough for a release by the other and the next grant
      expect(granted).toHaveLength(1);
      expect(await granted[0]?.release()).toBe(true);
      await waitUntil(() => granted.length === 2, "so is the other, behind it");
      await pause(500);
      expect(await granted[1]?.release()).toBe(true);
    },
  );
});
