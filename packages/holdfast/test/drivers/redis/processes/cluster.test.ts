import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { limitMs, startCluster } from "@holdfast/test-kit";
import { Cluster } from "ioredis";
import { expect, test, vi } from "vitest";

import { unique } from "../../../support/waiter-fixture.ts";
import { onRedis } from "../../../support/servers.ts";

onRedis("The directory of processes of a cluster", () => {
  test("has the processes of all nodes, whose answers cross the nodes", async () => {
    const cluster = await startCluster({ replicas: 0 });
    const clients = [1, 2, 3].map(
      () => new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port }))),
    );
    const all = clients.map((client, index) => createLocks(redis(client), { owner: `pod-${index}` }));
    const [asker, ...holders] = all as [(typeof all)[0], ...typeof all];
    try {
      const keys = holders.map(() => unique());
      await Promise.all(holders.map((locks, index) => locks.acquire(keys[index] ?? "")));
      await vi.waitFor(
        async () => {
          const { processes, problem } = await asker.admin.processes({ timeoutMs: 2_000 });
          expect(problem).toBe(null);
          const held = processes.filter(({ answered }) => answered).map(({ holds }) => holds[0]?.key);
          expect(new Set(held)).toEqual(new Set(keys));
        },
        { timeout: limitMs(20_000), interval: 50 },
      );
    } finally {
      await Promise.all(all.map((locks) => locks.close()));
      clients.forEach((client) => client.disconnect());
      await cluster.stop();
    }
  });
});
