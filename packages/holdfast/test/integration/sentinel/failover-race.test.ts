import { createLocks, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { rejection, startSentinels, waitUntil, type RedisServer, type Sentinels } from "@holdfast/test-kit";
import { afterEach, beforeEach, expect, test } from "vitest";

import { sentinelLibraries, type OpenSentinelClient } from "../../support/sentinel-clients.ts";
import { onRedis } from "../../support/servers.ts";

/**
 * The classic race: the primary dies before a replica has its grant. The replica takes its place and grants
 * again.
 */
onRedis("A grant that dies with the primary", () => {
  let lab: Sentinels;
  let former: RedisServer;
  let cleanups: (() => Promise<unknown>)[];

  beforeEach(async () => {
    lab = await startSentinels();
    former = await lab.primary();
    cleanups = [];
  });

  afterEach(async () => {
    for (const cleanup of cleanups.reverse()) {
      await cleanup();
    }
    await lab.stop();
  });

  /** The first holder's client uses no sentinels, so a failover of its server is unknown to the client. */
  async function opened(minReplicas: number): Promise<{ mine: Locks; others: Locks }> {
    const { client, close } = await (sentinelLibraries["ioredis 6"] as OpenSentinelClient)(lab);
    cleanups.push(close);
    const [mine, others] = [former.client(), client].map((each) => {
      const locks = createLocks(redis(each, { minReplicas }), { closeTimeoutMs: 200 });
      cleanups.push(() => locks.close());
      return locks;
    }) as [Locks, Locks];
    await mine.withLock("warm up", () => undefined);
    await others.withLock("warm up", () => undefined);
    return { mine, others };
  }

  /** From here on only the primary's clients know what it does. */
  async function cutOff(): Promise<void> {
    for (const follower of lab.servers) {
      if (follower !== former) {
        follower.freeze();
      }
    }
    await former.client().call("client", "kill", "type", "replica");
  }

  function replace(): Promise<RedisServer> {
    former.kill("SIGKILL");
    for (const follower of lab.servers) {
      if (follower !== former) {
        follower.thaw();
      }
    }
    return lab.replaced(former);
  }

  test("without minReplicas has a second holder, whose token is the larger", async () => {
    const { mine, others } = await opened(0);
    await cutOff();
    const first = await mine.acquire("key", { ttlMs: 120_000 });
    await replace();
    const second = await others.acquire("key", { waitMs: 60_000 });
    expect(first.remainingMs()).toBeGreaterThan(0);
    expect(second.remainingMs()).toBeGreaterThan(0);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken); // the larger token protects the resource now
    expect(await second.release()).toBe(true);
  });

  test("with minReplicas has one, because the first grant was never reported", async () => {
    const { mine, others } = await opened(1);
    await cutOff();
    const rejected = rejection(mine.tryAcquire("key", { ttlMs: 120_000 }));
    const probe = former.client();
    await waitUntil(async () => (await probe.exists("lock:key")) === 1, "the primary has granted it");
    await replace();
    const second = await others.acquire("key", { waitMs: 60_000 });
    expect((await rejected).error).toMatchObject({ name: "EngineError", retryable: true });
    expect(await second.release()).toBe(true);
  });
});
