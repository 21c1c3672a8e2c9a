import { setImmediate as turn } from "node:timers/promises";

import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { startCluster, waitUntil } from "@holdfast/test-kit";
import { Cluster } from "ioredis";
import { expect, test } from "vitest";

import { keysOnDifferentPrimaries } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";

onRedis("A driver of a cluster that is closed while it looks for a responsive node", () => {
  test("opens no further connection", async () => {
    const cluster = await startCluster({ replicas: 0 });
    const client = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
    client.on("error", () => undefined);
    try {
      await client.ping();
      const nodes = client.nodes("all");
      await Promise.all(nodes.map((node) => node.ping()));
      const last = cluster.servers.findIndex(({ port }) => port === nodes.at(-1)?.options.port);
      const probe = cluster.servers[last]?.client();
      const connections = async (): Promise<number> =>
        Number(/connected_clients:(\d+)/.exec(String(await probe?.info("clients")))?.[1]);
      const before = await connections();
      for (const server of cluster.servers.filter((_, index) => index !== last)) {
        server.freeze(); // the frozen nodes get requests first, and the last one afterwards
      }
      for (let i = 0; i < 3; i++) {
        const locks = createLocks(redis(client));
        const tried = locks.tryAcquire("key").catch(() => null);
        await turn(); // the first node has got its request
        await locks.close();
        await tried;
      }
      const later = createLocks(redis(client)); // sends requests in the same order, later
      const [key = ""] = keysOnDifferentPrimaries(3, "later", 1)[last] ?? [];
      expect(await (await later.acquire(key, { waitMs: 30_000 })).release()).toBe(true);
      await later.close();
      await waitUntil(async () => (await connections()) === before, "no connection is left");
    } finally {
      client.disconnect();
      await cluster.stop();
    }
  });
});
