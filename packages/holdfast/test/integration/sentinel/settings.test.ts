import { createLocks, type Locks } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { startProxy, startSentinels, waitUntil, type RedisServer, type Sentinels } from "@holdfast/test-kit";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { createSentinel as createSentinel6, RESP_TYPES } from "redis";
import { createSentinel as createSentinel5 } from "redis5";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

import { onRedis } from "../../support/servers.ts";
import { addUser, expectLocking, rowsOf, type Settings } from "../../support/settings-fixture.ts";

const ofIoredis: Readonly<Record<string, Settings>> = {
  "no setting of its own": {},
  "a prefix": { keyPrefix: "app:" },
  "a prefix with a hash tag, and a database": { keyPrefix: "{app}:", db: 3 },
  "no offline queue": { enableOfflineQueue: false },
  "no limit of retries": { maxRetriesPerRequest: null },
  "nothing kept for later": { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false },
  "a connection on demand": { lazyConnect: true },
  "no checks, and no repeated commands": { enableReadyCheck: false, autoResubscribe: false },
  "short timeouts of its own": { commandTimeout: 500, sentinelCommandTimeout: 1_000, socketTimeout: 1_000 },
  "delays of its own": {
    retryStrategy: () => 200,
    sentinelRetryStrategy: () => 50,
    sentinelReconnectStrategy: () => 50,
  },
  "sentinels that get only one request": { sentinelRetryStrategy: () => null },
  "no search for more sentinels": { updateSentinels: false },
  "failover detection of its own": { failoverDetector: true, sentinelMaxConnections: 1 },
  "options without effect": {
    role: "master",
    preferredSlaves: [{ ip: "127.0.0.1", port: "1" }],
    readOnly: true,
    enableAutoPipelining: true,
    connectionName: "worker",
  },
  "a reconnect on every error": { reconnectOnError: () => true },
};
const ofIoredis6: Readonly<Record<string, Settings>> = {
  "replies as RESP3 has them": { protocol: 3, replyMapping: "resp3" },
};

const mapped = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String };
const ofNodeRedis: Readonly<Record<string, Settings>> = {
  "no setting of its own": {},
  "a database": { nodeClientOptions: { database: 3 } },
  "no offline queue": { nodeClientOptions: { disableOfflineQueue: true } },
  "slow reconnects": { nodeClientOptions: { socket: { reconnectStrategy: () => 200 } } },
  "no reconnects": { nodeClientOptions: { socket: { reconnectStrategy: false } } },
  "a name, pings, and a short queue": {
    nodeClientOptions: { name: "worker", pingInterval: 50, commandsQueueMaxLength: 50 },
  },
  "several connections to the primary": { masterPoolSize: 3 },
  "connections to replicas": { replicaPoolSize: 2 },
  "one connection kept for itself": { masterPoolSize: 2, reserveClient: true },
  "a periodic request to the sentinels": { scanInterval: 100, passthroughClientErrorEvents: true },
  "no second search for the primary": { maxCommandRediscovers: 0 },
  RESP2: { RESP: 2 },
  RESP3: { RESP: 3 },
  "replies as Buffers and numbers as strings": { commandOptions: { typeMapping: mapped } },
};
const ofNodeRedis6: Readonly<Record<string, Settings>> = {
  "a prefix": { keyPrefix: "app:" },
  "a prefix in a Buffer, and a database": {
    keyPrefix: Buffer.from("äpp:"),
    nodeClientOptions: { database: 3 },
  },
};

type AtEnd = (cleanup: () => void | Promise<void>) => void;
type Open = (user: string, settings: Settings, atEnd: AtEnd) => Promise<RedisClient>;

interface Known {
  readonly keyPrefix?: string | Buffer;
  readonly db?: number;
  readonly nodeClientOptions?: { readonly database?: number };
}

onRedis("A client of sentinels, of the user's own", () => {
  let lab: Sentinels;
  let primary: RedisServer;

  beforeAll(async () => {
    lab = await startSentinels({ replicas: 1, downAfterMs: 60_000 });
    primary = await lab.primary();
  });

  afterAll(() => lab.stop());

  const libraries: Readonly<Record<string, Open>> = {
    "ioredis 6": (user, settings, atEnd) => ioredis(new Ioredis6(forIoredis(user, settings)), atEnd),
    "ioredis 5": (user, settings, atEnd) => ioredis(new Ioredis5(forIoredis(user, settings)), atEnd),
    "node-redis 6": (user, settings, atEnd) =>
      nodeRedis(createSentinel6, forNodeRedis(user, settings), atEnd),
    "node-redis 5": (user, settings, atEnd) =>
      nodeRedis(createSentinel5, forNodeRedis(user, settings), atEnd),
  };

  function forIoredis(username: string, settings: Settings): object {
    return { name: lab.name, sentinels: [...lab.addresses], username, password: "secret", ...settings };
  }

  function forNodeRedis(username: string, settings: Settings): object {
    const nodeClientOptions = { ...(settings as Known).nodeClientOptions, username, password: "secret" };
    return { name: lab.name, sentinelRootNodes: [...lab.addresses], ...settings, nodeClientOptions };
  }

  const rows = rowsOf({
    "ioredis 6": { ...ofIoredis, ...ofIoredis6 },
    "ioredis 5": ofIoredis,
    "node-redis 6": { ...ofNodeRedis, ...ofNodeRedis6 },
    "node-redis 5": ofNodeRedis,
  });

  describe.concurrent("acquires, waits, is notified, and continues after an outage:", () => {
    test.for(rows)("%s with %s", async ([library, what, settings], { onTestFinished }) => {
      const atEnd: AtEnd = (cleanup) => {
        onTestFinished(cleanup);
      };
      const key = `${library}, ${what}`;
      const user = key.replaceAll(/\W/g, "");
      await addUser(lab.servers, user);
      const open = libraries[library] as (typeof libraries)[string];
      const [holder, waiter] = [await open(user, settings, atEnd), await open(user, settings, atEnd)].map(
        (client) => {
          const locks = createLocks(redis(client), { closeTimeoutMs: 1_000 });
          atEnd(() => locks.close());
          return locks;
        },
      ) as [Locks, Locks];
      const { keyPrefix = "", db, nodeClientOptions } = settings as Known;
      const probe = primary.client({ db: db ?? nodeClientOptions?.database ?? 0 });
      const stored = `${String(keyPrefix)}lock:${key}`;
      const isStored = async (): Promise<boolean> => (await probe.exists(stored)) === 1;
      await expectLocking({ holder, waiter, key, servers: [primary], user, isStored });
    });
  });

  test.for(Object.entries(libraries))(
    "%s with a map of addresses goes where it leads",
    async ([library, open]) => {
      const proxy = await startProxy(primary.port);
      await addUser(lab.servers, "mapped");
      const cleanups: (() => void | Promise<void>)[] = [() => proxy.stop()];
      try {
        const map = { [`127.0.0.1:${primary.port}`]: { host: "127.0.0.1", port: proxy.port } };
        const settings = library.startsWith("ioredis") ? { natMap: map } : { nodeAddressMap: map };
        const client = await open("mapped", settings, (cleanup) => {
          cleanups.push(cleanup);
        });
        const locks = createLocks(redis(client));
        cleanups.push(() => locks.close());
        await locks.withLock("mapped", { waitMs: 30_000 }, () => undefined);
        await waitUntil(
          async () => (await locks.admin.nodes())[0]?.notifications === "verified",
          "notifications are verified",
        );
        const all = library.startsWith("ioredis") ? 3 : 2; // the client's, one for notifications, and of ioredis one for commands
        expect(proxy.size).toBe(all);
      } finally {
        for (const cleanup of cleanups.reverse()) {
          await cleanup();
        }
      }
    },
  );

  test.each([
    ["ioredis 6", (client: object) => new Ioredis6(client)],
    ["ioredis 5", (client: object) => new Ioredis5(client)],
  ])("%s that leads to a replica is refused, and opens no connection", async (_name, make) => {
    const client = make({ name: lab.name, sentinels: [...lab.addresses], role: "slave" });
    onTestFinished(() => client.disconnect());
    await client.ping();
    expect(() => redis(client)).toThrow(
      'Expected `client` to lead to the primary, got one with `role: "slave"`',
    );
  });
});

async function ioredis(client: Ioredis6 | Ioredis5, atEnd: AtEnd): Promise<RedisClient> {
  client.on("error", () => undefined);
  atEnd(() => {
    client.disconnect();
  });
  if (client.options.enableOfflineQueue === false) {
    await new Promise((resolve) => client.once("ready", resolve));
  }
  return client;
}

async function nodeRedis(
  create: (options: never) => unknown,
  options: object,
  atEnd: AtEnd,
): Promise<RedisClient> {
  const client = create(options as never) as ReturnType<typeof createSentinel6>;
  client.on("error", () => undefined);
  await client.connect();
  atEnd(() => client.destroy());
  return client;
}
