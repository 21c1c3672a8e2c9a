import { createLocks } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import {
  standaloneNodeArgs,
  startCluster,
  startRedis,
  stablePort,
  waitUntil,
  type RedisCluster,
} from "@holdfast/test-kit";
import { Cluster as Ioredis6Cluster } from "ioredis";
import { Cluster as Ioredis5Cluster } from "ioredis5";
import { createCluster as createCluster6 } from "redis";
import { createCluster as createCluster4 } from "redis4";
import { createCluster as createCluster5 } from "redis5";
import { afterAll, beforeAll, expect, test } from "vitest";

import { withMissingHost, SlotMap } from "../../../../src/drivers/redis/cluster/slot-map.ts";
import { keysOnDifferentPrimaries } from "../../../support/cluster-fixture.ts";
import { onRedis } from "../../../support/servers.ts";

interface Place {
  host: string;
  port: number;
}

interface Opened {
  client: RedisClient;
  close: () => unknown;
}

type Open = (root: Place, map: (address: string) => Place) => Promise<Opened>;

const libraries: Readonly<Record<string, Open>> = {
  "ioredis 6": async (root, natMap) => {
    const client = new Ioredis6Cluster([root], { natMap }).on("error", ignore);
    await client.ping();
    return { client, close: () => client.disconnect() };
  },
  "ioredis 5": async (root, natMap) => {
    const client = new Ioredis5Cluster([root], { natMap }).on("error", ignore);
    await client.ping();
    return { client, close: () => client.disconnect() };
  },
  "node-redis 6": async (socket, nodeAddressMap) => {
    const client = createCluster6({ rootNodes: [{ socket }], nodeAddressMap }).on("error", ignore);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 5": async (socket, nodeAddressMap) => {
    const client = createCluster5({ rootNodes: [{ socket }], nodeAddressMap }).on("error", ignore);
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 4": async (socket, nodeAddressMap) => {
    const client = createCluster4({ rootNodes: [{ socket }], nodeAddressMap }).on("error", ignore);
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
};

onRedis("A cluster whose nodes are reached by other addresses than they announce", () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster({ primaries: 2, replicas: 0 });
  });
  afterAll(() => cluster.stop());

  /** Makes each node announce a port without a listener. Returns the real place of each announced address. */
  async function disguise(): Promise<Map<string, Place>> {
    const places = new Map<string, Place>();
    for (const { port, client } of cluster.servers.map((server) => ({
      port: server.port,
      client: server.client(),
    }))) {
      const announced = await stablePort();
      await client.config("SET", "cluster-announce-port", String(announced));
      places.set(`127.0.0.1:${announced}`, { host: "127.0.0.1", port });
    }
    await waitUntil(async () => {
      const said = await Promise.all(
        cluster.servers.map((server) => server.client().call("CLUSTER", "SLOTS")),
      );
      return said.every((slots) =>
        Array.from(places.keys()).every((one) => JSON.stringify(slots).includes(one.slice(10))),
      );
    }, "all nodes announce the new ports");
    return places;
  }

  async function expectLocks(client: RedisClient, name: string): Promise<void> {
    const locks = createLocks(redis(client, { commandTimeoutMs: 1_000 }));
    try {
      for (const key of keysOnDifferentPrimaries(2, name, 2).flat()) {
        const lease = await locks.tryAcquire(key);
        expect(await lease?.release()).toBe(true);
      }
    } finally {
      await locks.close();
    }
  }

  test.each(Object.entries(libraries))("by %s: the client's map of addresses is used", async (name, open) => {
    const places = await disguise();
    const root = { host: "127.0.0.1", port: cluster.ports[0] as number };
    const { client, close } = await open(root, (address) => places.get(address) ?? root);
    await expectLocks(client, name);
    if (name !== "node-redis 4") {
      for (const [address, place] of await disguise()) {
        places.set(address, place);
      }
      await expectLocks(client, `${name}, of nodes that are new to the client`);
    }
    await close();
  });
});

onRedis("A node of a cluster that does not know its own address", () => {
  test.each([
    ["ip", '""'],
    ["hostname", '"?"'],
    ["unknown-endpoint", "null"],
  ])(
    "is reached at the address of the request, whatever its host field says (%s)",
    async (preferred, host) => {
      const args = await standaloneNodeArgs();
      args.splice(args.indexOf("--cluster-announce-ip"), 2);
      const server = await startRedis({ args: [...args, "--cluster-preferred-endpoint-type", preferred] });
      try {
        const probe = server.client();
        await probe.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
        const announced = await probe.call("CLUSTER", "SLOTS");
        expect(JSON.stringify(announced)).toContain(`[0,16383,[${host},${server.port},`);
        const address = `10.0.0.1:${server.port}`;
        expect(SlotMap.read(announced, address).primaries()).toEqual([address]);
      } finally {
        await server.stop();
      }
    },
  );

  test("refers to other nodes in the same way", () => {
    for (const moved of [":7000", "?:7000", "10.0.0.1:7000"]) {
      expect(withMissingHost(moved, "10.0.0.1:6379")).toBe("10.0.0.1:7000");
    }
    expect(withMissingHost("10.0.0.2:7000", "10.0.0.1:6379")).toBe("10.0.0.2:7000");
    expect(withMissingHost(":7000", "fd00::1:6379")).toBe("fd00::1:7000");
  });
});

function ignore(): void {
  // Errors of a connection are reported by the commands that they affect.
}
