import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { systemClock } from "../../../src/runtime/clock.ts";
import { IoredisCluster } from "../../../src/drivers/redis/clients/ioredis-cluster.ts";
import { Router } from "../../../src/drivers/redis/cluster/router.ts";
import { slotOf, tagOf } from "../../../src/drivers/redis/cluster/hash-slot.ts";
import { counterKey } from "../../../src/drivers/redis/protocol/keys.ts";
import { clientInfoScript } from "../../../src/drivers/redis/protocol/scripts.generated.ts";
import { systemRandom } from "../../../src/runtime/random.ts";
import { clusterLibraries } from "../../support/cluster-clients.ts";
import { ClusterFixture, slotOfLock } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";

onRedis("Redirections of a cluster", () => {
  let fixture: ClusterFixture;

  beforeAll(async () => {
    const args = ["--cluster-require-full-coverage", "no"];
    fixture = await ClusterFixture.open({ primaries: 3, replicas: 0, args });
  });

  afterAll(async () => {
    await fixture[Symbol.asyncDispose]();
  });

  async function placesOf(slot: number): Promise<[RedisServer, RedisServer, RedisServer]> {
    const { cluster } = fixture;
    const source = await cluster.ownerOf(slot);
    return [source, ...cluster.servers.filter((server) => server !== source)] as never;
  }

  test.each(Object.entries(clusterLibraries))(
    "a slot in migration: ASK and TRYAGAIN are waited out, by %s",
    async (name, open) => {
      const { client, close } = await open(fixture.port);
      const locks = createLocks(redis(client, { commandTimeoutMs: 20_000 }));
      const keyOf = (what: string): string => `{on its way}:${name}:${what}`;
      const slot = slotOfLock(keyOf(""));
      const [source, target] = await placesOf(slot);
      const lease = await locks.acquire(keyOf("held"), { ttlMs: 60_000 });
      const { validUntil } = lease;
      await source.client().del(counterKey(tagOf(slot))); // otherwise the counter would exist for every key of the slot
      const requests: Promise<unknown>[] = [];
      await fixture.cluster.migrate(slot, target, async () => {
        const before = await refusalsOf(source);
        requests.push(locks.checkFence(keyOf("free"), 1n)); // none of its keys is there
        await waitUntil(
          async () => (await refusalsOf(source)).ASK > before.ASK,
          "the client is referred to the target",
        );
        requests.push(lease.extend()); // some of its keys are there
        await waitUntil(
          async () => (await refusalsOf(source)).TRYAGAIN > before.TRYAGAIN,
          "the client must try again",
        );
      });
      expect(await Promise.all(requests)).toEqual(["stale", undefined]);
      expect(lease.validUntil).toBeGreaterThan(validUntil);
      expect(await lease.release()).toBe(true);
      await locks.close();
      close();
    },
  );

  test("MOVED is believed over a node that lags, until the node that it names contradicts or fails", async () => {
    const { cluster } = fixture;
    const client = fixture.client();
    await client.ping();
    const router = new Router({
      client: new IoredisCluster(client as never),
      clock: systemClock,
      random: systemRandom,
      commandTimeoutMs: 5_000,
    });
    fixture.onCleanup(() => {
      router.close();
    });
    const key = "{lagging}";
    const slot = slotOf(key);
    const [source, target, laggard] = await placesOf(slot);
    const request = (): Promise<unknown> => router.run(slot, clientInfoScript, [key], []);
    const owner = (): string | undefined => router.map.ownerOf(slot);
    await request();
    expect(owner()).toBe(addressOf(source));
    await laggard.client().call("CLUSTER", "FORGET", await idOf(target));
    await cluster.migrate(slot, target);
    await request();
    expect(owner()).toBe(addressOf(target));
    for (const mapSource of [target, laggard]) {
      await readMapFrom(router, mapSource);
      expect(owner()).toBe(addressOf(target));
    }
    await assign(slot, source, [source, target]);
    for (const mapSource of [target, laggard]) {
      await readMapFrom(router, mapSource);
      expect(owner()).toBe(addressOf(source));
    }
    await assign(slot, target, [target, source]);
    await request();
    expect(owner()).toBe(addressOf(target));
    target.kill("SIGKILL");
    await waitUntil(async () => {
      await readMapFrom(router, laggard);
      return owner() === addressOf(source);
    }, "other nodes are believed again");
  });
});

/** Reads the slot map from this node. */
async function readMapFrom(router: Router, mapSource: RedisServer): Promise<void> {
  await waitUntil(async () => {
    await router.refresh(addressOf(mapSource));
    return router.map.source === addressOf(mapSource);
  }, "the router uses this node");
}

type Refusals = Readonly<Record<"ASK" | "TRYAGAIN", number>>;

/** How often a node has sent each of these redirections. */
async function refusalsOf(server: RedisServer): Promise<Refusals> {
  const readMapFrom = await server.client().info("errorstats");
  const count = (what: string): number =>
    Number(new RegExp(`errorstat_${what}:count=(\\d+)`).exec(readMapFrom)?.[1] ?? 0);
  return { ASK: count("ASK"), TRYAGAIN: count("TRYAGAIN") };
}

function addressOf({ port }: RedisServer): string {
  return `127.0.0.1:${port}`;
}

/** Moves a slot without keys, and announces the move to the given nodes only. */
async function assign(slot: number, to: RedisServer, informed: readonly RedisServer[]): Promise<void> {
  const id = await idOf(to);
  for (const server of informed) {
    await server.client().call("CLUSTER", "SETSLOT", slot, "NODE", id);
  }
}

async function idOf(server: RedisServer): Promise<string> {
  return String(await server.client().call("CLUSTER", "MYID"));
}
