import { startCluster, startRedis, type RedisCluster, type RedisServer } from "@holdfast/test-kit";
import { createLocks } from "holdfast";
import { fencedRedis, type FencedRedisClient, type FencedWrite } from "holdfast/fencing";
import { redis } from "holdfast/redis";
import { Redis as Ioredis5 } from "ioredis5";
import { createClient } from "redis";
import { createClient as createClient4 } from "redis4";
import { createClient as createClient5 } from "redis5";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { clusterLibraries } from "../support/cluster-clients.ts";
import { onRedis } from "../support/servers.ts";

let server: RedisServer;

interface OpenClient {
  readonly client: FencedRedisClient;
  readonly close: () => Promise<unknown>;
}

const clients: Readonly<Record<string, () => Promise<OpenClient>>> = {
  "ioredis 6": async () => ({ client: server.client(), close: async () => undefined }),
  "ioredis 5": async () => {
    const client = new Ioredis5(server.port, "127.0.0.1");
    return { client, close: () => client.quit() };
  },
  "node-redis 6": async () => {
    const client = await createClient({ url: `redis://127.0.0.1:${server.port}` }).connect();
    return { client, close: () => client.close() };
  },
  "node-redis 5": async () => {
    const client = await createClient5({ url: `redis://127.0.0.1:${server.port}` }).connect();
    return { client, close: () => client.close() };
  },
  "node-redis 4": async () => {
    const client = await createClient4({ url: `redis://127.0.0.1:${server.port}` }).connect();
    return { client, close: () => client.quit() };
  },
};

const price = (value: string, fencingToken: bigint): FencedWrite => ({
  fenceKey: "{price}:fence",
  fencingToken,
  commands: [["SET", "{price}", value]],
});

onRedis("fencedRedis", () => {
  beforeAll(async () => {
    server = await startRedis();
  });

  beforeEach(async () => {
    await server.client().flushall();
  });

  afterAll(async () => {
    await server?.stop();
  });

  test.each(Object.keys(clients))(
    "refuses a smaller token and accepts the same again, with %s",
    async (name) => {
      const { client, close } = await (clients[name] as () => Promise<OpenClient>)();
      const outcomes = [];
      for (const [value, token] of [
        ["a", 7n],
        ["b", 9n],
        ["c", 8n],
        ["d", 9n],
      ] as const) {
        outcomes.push(await fencedRedis(client, price(value, token)));
      }
      expect(outcomes).toEqual(["written", "written", "stale", "written"]);
      expect(await server.client().get("{price}")).toBe("d");
      await close();
    },
  );

  test("refuses a holder whose lease expired during a pause, after the next holder has written", async () => {
    const locks = [createLocks(redis(server.client())), createLocks(redis(server.client()))] as const;
    const paused = await locks[0].acquire("price", { ttlMs: 100, renew: false });
    const next = await locks[1].acquire("price"); // waits until the lease of the paused holder has expired
    expect(await fencedRedis(server.client(), price("new", next.fencingToken))).toBe("written");
    expect(await fencedRedis(server.client(), price("late", paused.fencingToken))).toBe("stale");
    expect(await server.client().get("{price}")).toBe("new");
    await Promise.all(locks.map((each) => each.close()));
  });

  test("compares tokens exactly, beyond the numbers of a double", async () => {
    const client = server.client();
    const outcomes = [];
    for (const token of [2n ** 53n + 1n, 2n ** 53n, 999n, 2n ** 53n + 2n, 10n ** 16n, 9n * 10n ** 15n]) {
      outcomes.push(await fencedRedis(client, price("x", token)));
    }
    expect(outcomes).toEqual(["written", "stale", "stale", "written", "written", "stale"]);
  });

  test("runs all commands in one step, in order", async () => {
    const client = server.client();
    const commands = [
      ["RPUSH", "list", "1", "2"],
      ["INCR", "count"],
      ["RPUSH", "list", "3"],
    ];
    await fencedRedis(client, { fenceKey: "fence", fencingToken: 1n, commands });
    expect([await client.lrange("list", 0, -1), await client.get("count")]).toEqual([["1", "2", "3"], "1"]);
  });

  test("rejects with the error of a command, and keeps the fence", async () => {
    const client = server.client();
    await client.set("text", "x");
    const write = { fenceKey: "fence", fencingToken: 5n, commands: [["INCR", "text"]] };
    await expect(fencedRedis(client, write)).rejects.toThrow("not an integer");
    expect(await client.get("fence")).toBe("5");
  });

  test("rejects if the fence is no number", async () => {
    await server.client().set("{price}:fence", "x");
    await expect(fencedRedis(server.client(), price("a", 1n))).rejects.toThrow("the fence is not a number");
  });
});

onRedis("fencedRedis, on a cluster,", () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster({ replicas: 0 });
  });

  afterAll(async () => {
    await cluster?.stop();
  });

  test.each(Object.entries(clusterLibraries))("finds the node of the fence, with %s", async (name, open) => {
    const { client, close } = await open(cluster.ports[0] as number);
    for (const tag of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
      const write = {
        fenceKey: `{${name}:${tag}}:fence`,
        fencingToken: 2n,
        commands: [["SET", `{${name}:${tag}}`, "x"]],
      };
      const guarded = client as unknown as FencedRedisClient;
      expect(await fencedRedis(guarded, write)).toBe("written");
      expect(await fencedRedis(guarded, { ...write, fencingToken: 1n })).toBe("stale");
    }
    close();
  });
});

describe("fencedRedis, without a server,", () => {
  test.each([
    [{}, price("a", 1n), "Expected `client` to be an ioredis or node-redis client"],
    [
      { evalSha: 0 },
      { ...price("a", 1n), commands: [[]] },
      "Expected `commands` to be lists with a command each",
    ],
    [{ evalSha: 0 }, { ...price("a", 1n), fenceKey: "" }, "Expected `fenceKey` to be a string of 1 to 512"],
    [{ evalSha: 0 }, { ...price("a", 1n), key: "a" }, "Unknown option `key`"],
  ])("refuses an invalid value: %#", async (client, write, message) => {
    await expect(fencedRedis(client as FencedRedisClient, write)).rejects.toThrow(message);
  });
});
