import { createLocks, type Driver, type Locks } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startCluster, type RedisCluster } from "@holdfast/test-kit";

import { mayRemain } from "../../support/residue.ts";
import { clientConformance, wholeConformance } from "../../support/conformance.ts";
import { clusterLibraries, type OpenCluster } from "../../support/cluster-clients.ts";
import { onRedis } from "../../support/servers.ts";

interface Setup {
  readonly name: string;
  readonly open: (port: number) => Promise<OpenCluster>;
  readonly options?: RedisOptions;
}

const setups: readonly Setup[] = [
  { name: "ioredis 6", open: (port) => clusterLibraries["ioredis 6"](port) },
  { name: "ioredis 5 with a keyPrefix", open: (port) => clusterLibraries["ioredis 5"](port, "app:") },
  { name: "node-redis 6", open: (port) => clusterLibraries["node-redis 6"](port) },
  {
    name: "node-redis 5, all locks in one slot",
    open: (port) => clusterLibraries["node-redis 5"](port),
    options: { prefix: "{app}:" },
  },
  { name: "node-redis 4", open: (port) => clusterLibraries["node-redis 4"](port) },
];

onRedis("Redis Cluster", () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3, replicas: 3 });
  });

  afterAll(async () => {
    await cluster.stop();
  });

  for (const [index, { name, open, options }] of setups.entries()) {
    /** The first client runs the whole suite. */
    const conformance = index === 0 ? wholeConformance : clientConformance;
    describe(`by ${name}`, () => {
      let clients: OpenCluster[];

      beforeAll(async () => {
        // The clients outlive the drivers of the tests, so a driver must not close the client that it was
        // given.
        clients = [await open(cluster.ports[0] as number), await open(cluster.ports[1] as number)];
      });

      afterAll(() => {
        for (const client of clients) {
          client.close();
        }
      });

      describe.concurrent("passes the conformance suite:", () => {
        conformance({
          test,
          open: async () => {
            const [driver, other] = clients.map(({ client }) => redis(client, options)) as [Driver, Driver];
            const keepers = await Promise.all([driver, other].map(subscribedDriver));
            return {
              driver,
              other,
              cleanup: async () => {
                await Promise.all(keepers.map((locks) => locks.close()));
              },
            };
          },
        });
      });
    });
  }

  test("afterwards no lock, no queue and no connection of the library is left", async () => {
    for (const server of cluster.servers.slice(0, 3)) {
      const probe = server.client();
      await vi.waitFor(async () => {
        const subscribed = String(await probe.client("LIST")).match(/ (sub|ssub)=[1-9]/g);
        expect(subscribed).toBeNull();
        const left: string[] = [];
        for (const key of await probe.keys("*")) {
          if (!(await mayRemain(probe, key))) {
            left.push(key);
          }
        }
        expect(left).toEqual([]);
      });
    }
  });
});

/** Keeps a subscribed driver open, because a break is reported at once only from then on. */
async function subscribedDriver(driver: Driver): Promise<Locks> {
  const locks = createLocks(driver);
  await vi.waitFor(
    async () => {
      expect((await locks.admin.nodes()).map(({ notifications }) => notifications)).not.toContain(
        "unverified",
      );
    },
    { interval: 5 },
  );
  return locks;
}
