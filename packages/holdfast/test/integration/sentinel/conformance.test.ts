import { createLocks, type Driver, type NodeState } from "holdfast";
import { redis, type RedisOptions } from "holdfast/redis";
import { startSentinels, waitUntil, type Sentinels } from "@holdfast/test-kit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { clientConformance } from "../../support/conformance.ts";
import { mayRemain } from "../../support/residue.ts";
import { sentinelLibraries, type SentinelClient } from "../../support/sentinel-clients.ts";
import { onRedis } from "../../support/servers.ts";

const setups = Object.entries(sentinelLibraries).map(([library, open]) => {
  const options: RedisOptions = library === "ioredis 5" ? { minReplicas: 2 } : {};
  return { name: [library, ...Object.keys(options)].join(", with "), open, options };
});

for (const { name, open, options } of setups) {
  onRedis(`Redis with sentinels by ${name}`, () => {
    let lab: Sentinels;
    let clients: SentinelClient[];
    let probe: Redis;
    let given: string[];

    beforeAll(async () => {
      lab = await startSentinels();
      clients = [await open(lab), await open(lab)];
      probe = (await lab.primary()).client();
      given = await connectionsOf(probe);
    });

    afterAll(async () => {
      await Promise.all(clients.map((client) => client.close()));
      await lab.stop();
    });

    describe.concurrent("passes the conformance suite:", () => {
      clientConformance({
        test,
        open: async () => {
          const [driver, other] = clients.map(({ client }) => redis(client, options)) as [Driver, Driver];
          const keepers = await Promise.all([driver, other].map(subscribed));
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

    test("nodes reports the primary, its role, and its replicas", async () => {
      const primary = await lab.primary();
      const locks = await start(redis((clients[0] as SentinelClient).client, options));
      try {
        const followers = lab.servers.filter((server) => server !== primary);
        let nodes: NodeState[] = [];
        await waitUntil(async () => {
          nodes = await locks.admin.nodes();
          return nodes[0]?.replication?.replicas.every(({ isOnline }) => isOnline) === true;
        }, "its replicas are online");
        const [first, ...more] = nodes;
        expect(more).toEqual([]);
        expect(first).toMatchObject({ reachable: true, role: "master", error: null });
        expect(first?.replication?.isLinkUp).toBeNull();
        const replicas = first?.replication?.replicas ?? [];
        expect(replicas.map(({ address }) => address).sort()).toEqual(
          followers.map(({ port }) => `127.0.0.1:${port}`).sort(),
        );
      } finally {
        await locks.close();
      }
    });

    test("afterwards no lock, no queue and no connection of the library is left, and the clients still work", async () => {
      await waitUntil(
        async () => (await connectionsOf(probe)).every((id) => given.includes(id)),
        "no connection is left",
      );
      const left: string[] = [];
      for (const key of await probe.keys("*")) {
        if (!(await mayRemain(probe, key))) {
          left.push(key);
        }
      }
      expect(left).toEqual([]);
      for (const client of clients) {
        expect(await client.ping()).toBe("PONG");
      }
    });
  });
}

async function connectionsOf(probe: Redis): Promise<string[]> {
  const list = String(await probe.client("LIST"));
  return Array.from(list.matchAll(/^id=(\d+)/gm), ([, id]) => String(id));
}

/** Keeps a driver open whose notifications are verified, because a break is reported at once only from then on. */
async function subscribed(driver: Driver): ReturnType<typeof start> {
  const locks = await start(driver);
  await waitUntil(
    async () => (await locks.admin.nodes())[0]?.notifications === "verified",
    "notifications are verified",
  );
  return locks;
}

async function start(driver: Driver): Promise<ReturnType<typeof createLocks>> {
  const locks = createLocks(driver);
  await locks.inspect("any key makes it connect");
  return locks;
}
