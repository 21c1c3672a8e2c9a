import { createLocks, type Locks } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { rejection, startProxy } from "@holdfast/test-kit";
import { Cluster as Ioredis6 } from "ioredis";
import { Cluster as Ioredis5 } from "ioredis5";
import { createCluster as createCluster6, RESP_TYPES } from "redis";
import { createCluster as createCluster4 } from "redis4";
import { createCluster as createCluster5 } from "redis5";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { ClusterFixture } from "../../support/cluster-fixture.ts";
import { onRedis } from "../../support/servers.ts";
import { addUser, expectLocking, rowsOf, type Settings } from "../../support/settings-fixture.ts";

const ofIoredis: Readonly<Record<string, Settings>> = {
  "no setting of its own": {},
  "a prefix": { keyPrefix: "app:" },
  "a prefix with a hash tag, of its nodes": { redisOptions: { keyPrefix: "{app}:" } },
  "reads from replicas": { scaleReads: "slave", redisOptions: { readOnly: true } },
  "reads from any node of its choice": { scaleReads: (nodes: unknown[]) => nodes.at(-1) },
  "no offline queue": { enableOfflineQueue: false, redisOptions: { enableOfflineQueue: false } },
  "no ready check": { enableReadyCheck: false, redisOptions: { enableReadyCheck: false } },
  "a connection on demand": { lazyConnect: true },
  "no reconnects": { clusterRetryStrategy: () => null, redisOptions: { retryStrategy: () => null } },
  "no redirections": { maxRedirections: 0, retryDelayOnMoved: 50, retryDelayOnTryAgain: 1 },
  "a slot map that it reads often": { slotsRefreshInterval: 50, slotsRefreshTimeout: 500 },
  "automatic pipelines": { enableAutoPipelining: true, redisOptions: { enableAutoPipelining: true } },
  "subscribers for each shard": { shardedSubscribers: true },
  "no limit of retries": { redisOptions: { maxRetriesPerRequest: null } },
  "no resent commands": {
    redisOptions: { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
  },
  "short timeouts of its nodes": { redisOptions: { commandTimeout: 300, socketTimeout: 500 } },
  "numbers as strings, and a name": { redisOptions: { stringNumbers: true, connectionName: "worker" } },
  "a reconnect on every error": { redisOptions: { reconnectOnError: () => true } },
};
const ofIoredis6: Readonly<Record<string, Settings>> = {
  "replies as RESP3 has them": { redisOptions: { protocol: 3, replyMapping: "resp3" } },
};

const ofNodeRedis: Readonly<Record<string, Settings>> = {
  "no setting of its own": {},
  "reads from replicas": { useReplicas: true },
  "connections on demand": { minimizeConnections: true },
  "no redirections": { maxCommandRedirections: 0 },
  "no offline queue": { defaults: { disableOfflineQueue: true } },
  "no reconnects": { defaults: { socket: { reconnectStrategy: false } } },
  "slow reconnects": { defaults: { socket: { reconnectStrategy: () => 200 } } },
  "a name, pings, and a short queue": {
    defaults: { name: "worker", pingInterval: 50, commandsQueueMaxLength: 50 },
  },
};
const mapped = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String };
const ofNodeRedis5and6: Readonly<Record<string, Settings>> = {
  RESP2: { RESP: 2 },
  RESP3: { RESP: 3 },
  "replies as Buffers and numbers as strings": { commandOptions: { typeMapping: mapped } },
};
const ofNodeRedis6: Readonly<Record<string, Settings>> = {
  "a prefix in a Buffer": { keyPrefix: Buffer.from("äpp:") },
};

const rows = rowsOf({
  "ioredis 6": { ...ofIoredis, ...ofIoredis6 },
  "ioredis 5": ofIoredis,
  "node-redis 6": { ...ofNodeRedis, ...ofNodeRedis5and6, ...ofNodeRedis6 },
  "node-redis 5": { ...ofNodeRedis, ...ofNodeRedis5and6 },
  "node-redis 4": ofNodeRedis,
});

interface Known {
  readonly keyPrefix?: string | Buffer;
  readonly redisOptions?: { readonly keyPrefix?: string };
  readonly defaults?: object;
}

type AtEnd = (cleanup: () => void | Promise<void>) => void;

onRedis("A client of a cluster, of the user's own", () => {
  let fixture: ClusterFixture;

  beforeAll(async () => {
    fixture = await ClusterFixture.open({ primaries: 2, replicas: 2 });
  });

  afterAll(async () => {
    await fixture[Symbol.asyncDispose]();
  });

  function forIoredis(username: string, settings: Settings): [{ host: string; port: number }[], object] {
    const redisOptions = { ...(settings as Known).redisOptions, username, password: "secret" };
    return [[{ host: "127.0.0.1", port: fixture.port }], { ...settings, redisOptions }];
  }

  function forNodeRedis(username: string, settings: Settings): object {
    const defaults = { ...(settings as Known).defaults, username, password: "secret" };
    return { rootNodes: [{ socket: { host: "127.0.0.1", port: fixture.port } }], ...settings, defaults };
  }

  type Open = (user: string, settings: Settings, atEnd: AtEnd) => Promise<RedisClient>;
  const libraries: Readonly<Record<string, Open>> = {
    "ioredis 6": async (...[user, settings, atEnd]) =>
      ioredis(new Ioredis6(...forIoredis(user, settings)), atEnd),
    "ioredis 5": async (...[user, settings, atEnd]) =>
      ioredis(new Ioredis5(...forIoredis(user, settings)), atEnd),
    "node-redis 6": (user, settings, atEnd) => nodeRedis(createCluster6, forNodeRedis(user, settings), atEnd),
    "node-redis 5": (user, settings, atEnd) => nodeRedis(createCluster5, forNodeRedis(user, settings), atEnd),
    "node-redis 4": (user, settings, atEnd) => nodeRedis(createCluster4, forNodeRedis(user, settings), atEnd),
  };

  describe.concurrent("acquires, waits, is notified, and continues after an outage:", () => {
    test.for(rows)("%s with %s", async ([library, what, settings], { onTestFinished }) => {
      const atEnd: AtEnd = (cleanup) => {
        onTestFinished(cleanup);
      };
      const key = `${library}, ${what}`;
      const user = key.replaceAll(/\W/g, "");
      const { servers } = fixture.cluster;
      await addUser(servers, user);
      const open = libraries[library] as Open;
      const [holder, waiter] = [await open(user, settings, atEnd), await open(user, settings, atEnd)].map(
        (client) => {
          const locks = createLocks(redis(client), { closeTimeoutMs: 1_000 });
          atEnd(() => locks.close());
          return locks;
        },
      ) as [Locks, Locks];
      const { keyPrefix, redisOptions } = settings as Known;
      const stored = `${String(keyPrefix ?? redisOptions?.keyPrefix ?? "")}lock:${key}`;
      const isStored = async (): Promise<boolean> => (await fixture.client().exists(stored)) === 1;
      await expectLocking({ holder, waiter, key, servers, user, isStored });
    });
  });

  test.for([
    ["ioredis 6", (port: number) => new Ioredis6([{ host: "127.0.0.1", port }])],
    ["ioredis 5", (port: number) => new Ioredis5([{ host: "127.0.0.1", port }])],
  ] as const)("%s that is still connecting is unreachable, and is awaited", async ([, make]) => {
    const proxy = await startProxy(fixture.port);
    proxy.refuse(true);
    const client = make(proxy.port);
    client.on("error", () => undefined);
    const locks = createLocks(redis(client, { commandTimeoutMs: 300 }));
    try {
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
      const waiting = locks.acquire("key", { waitMs: 60_000 });
      proxy.refuse(false);
      expect(await (await waiting).release()).toBe(true);
    } finally {
      await locks.close();
      client.disconnect();
      await proxy.stop();
    }
  });
});

function ioredis(client: Ioredis6 | Ioredis5, atEnd: AtEnd): RedisClient {
  client.on("error", () => undefined);
  atEnd(() => {
    client.disconnect();
  });
  return client;
}

async function nodeRedis(
  create: (options: never) => unknown,
  options: object,
  atEnd: AtEnd,
): Promise<RedisClient> {
  const client = create(options as never) as ReturnType<typeof createCluster6>;
  client.on("error", () => undefined);
  await client.connect();
  atEnd(() => {
    try {
      if ("destroy" in client) {
        client.destroy();
      } else {
        void (client as { disconnect(): Promise<void> }).disconnect().catch(() => undefined);
      }
    } catch {
      // The client of one of the cluster's nodes had ended.
    }
  });
  return client;
}
