import { createLocks, type Locks } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { Redis as Ioredis6 } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { createClient as createClient6, RESP_TYPES } from "redis";
import { createClient as createClient4 } from "redis4";
import { createClient as createClient5 } from "redis5";
import { expect, test } from "vitest";
import { abortOf, rejection, waitUntil, type Proxy } from "@holdfast/test-kit";

import { onCleanup, newKey, onSharedRedis, ownProxy, reasonOf, shared } from "../../support/fault-fixture.ts";

type Settings = Readonly<Record<string, unknown>>;

/** A client as users make it, which connects through a proxy. */
const libraries: Readonly<Record<string, (port: number, settings: Settings) => Promise<RedisClient>>> = {
  "ioredis 6": async (port, settings) => ioredis(new Ioredis6({ host: "127.0.0.1", port, ...settings })),
  "ioredis 5": async (port, settings) => ioredis(new Ioredis5({ host: "127.0.0.1", port, ...settings })),
  "node-redis 6": async (port, settings) => nodeRedis(createClient6, port, settings),
  "node-redis 5": async (port, settings) => nodeRedis(createClient5, port, settings),
  "node-redis 4": async (port, settings) => nodeRedis(createClient4, port, settings),
};

const ofIoredis: Readonly<Record<string, Settings>> = {
  "no setting of its own": {},
  "no offline queue": { enableOfflineQueue: false },
  "no limit of retries": { maxRetriesPerRequest: null },
  "no retries": { maxRetriesPerRequest: 0 },
  "one retry": { maxRetriesPerRequest: 1 },
  "dropped commands without a reply": { autoResendUnfulfilledCommands: false },
  "nothing kept for later": {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  },
  "automatic pipelines": { enableAutoPipelining: true },
  "numbers as strings": { stringNumbers: true },
  "a short timeout of its own": { commandTimeout: 300 },
  "a timeout of inactivity": { socketTimeout: 500 },
  "a name": { connectionName: "worker" },
  "a connection on demand": { lazyConnect: true },
  "no ready check": { enableReadyCheck: false },
  "subscriptions that are not repeated": { autoResubscribe: false },
  "a prefix": { keyPrefix: "app:" },
  "a prefix with a hash tag, and a database": { keyPrefix: "{app}:", db: 4 },
  "a slow start of reconnects": { retryStrategy: () => 200 },
  "a reconnect on every error": { reconnectOnError: () => true },
  "reads from replicas": { readOnly: true },
  "friendly stacks": { showFriendlyErrorStack: true },
};

const ofIoredis6: Readonly<Record<string, Settings>> = {
  RESP2: { protocol: 2 },
  "replies as RESP3 has them": { protocol: 3, replyMapping: "resp3" },
};

const ofNodeRedis: Readonly<Record<string, Settings>> = {
  "no setting of its own": {},
  "no offline queue": { disableOfflineQueue: true },
  "a name": { name: "worker" },
  pings: { pingInterval: 50 },
  "a database": { database: 4 },
  "slow reconnects": { socket: { reconnectStrategy: () => 200 } },
  "a short queue": { commandsQueueMaxLength: 50 },
};

const mapped = {
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.SIMPLE_STRING]: Buffer,
  [RESP_TYPES.NUMBER]: String,
};
const ofNodeRedis5and6: Readonly<Record<string, Settings>> = {
  RESP2: { RESP: 2 },
  RESP3: { RESP: 3 },
  "replies as Buffers and numbers as strings": { commandOptions: { typeMapping: mapped } },
  "a timeout of its own": { commandOptions: { timeout: 300 } },
  "a timeout of inactivity": { socket: { socketTimeout: 1_000 }, pingInterval: 100 },
};
const ofNodeRedis6: Readonly<Record<string, Settings>> = {
  "a prefix": { keyPrefix: "app:" },
  "a prefix in a Buffer, and a database": { keyPrefix: Buffer.from("äpp:"), database: 4 },
};

const rows = Object.entries({
  "ioredis 6": { ...ofIoredis, ...ofIoredis6 },
  "ioredis 5": ofIoredis,
  "node-redis 6": { ...ofNodeRedis, ...ofNodeRedis5and6, ...ofNodeRedis6 },
  "node-redis 5": { ...ofNodeRedis, ...ofNodeRedis5and6 },
  "node-redis 4": ofNodeRedis,
}).flatMap(([library, all]) =>
  Object.entries(all).map(([what, settings]) => [library, what, settings] as const),
);

onSharedRedis("a client of the user's own", () => {
  test.each(rows)(
    "%s with %s: acquires, waits, is notified, and continues after an outage",
    async (library, _what, settings) => {
      const [holder, waiter] = [await user(library, settings), await user(library, settings)];
      const key = newKey();
      const lease = await holder.locks.acquire(key, { ttlMs: 60_000 });
      const [lockKey] = (await keysOf(settings)).filter((one) => one.endsWith(`lock:${key}`));
      expect(lockKey).toBe(`${String((settings["keyPrefix"] as string | undefined) ?? "")}lock:${key}`);
      expect(await waiter.locks.tryAcquire(key)).toBeNull();
      const waiting = waiter.locks.acquire(key, { ttlMs: 60_000 });
      await waitUntil(
        async () => (await holder.locks.inspect(key)).waiterCount === 1,
        "the waiter is queued",
      );
      expect((await holder.locks.admin.list()).locks.map((lock) => lock.key)).toEqual([key]);
      expect(await lease.release()).toBe(true);
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      expect((await waiter.locks.admin.nodes())[0]?.notifications).toBe("verified");
      for (const { proxy } of [holder, waiter]) {
        proxy.cut();
      }
      await waitUntil(
        () =>
          next.extend().then(
            () => true,
            () => false,
          ),
        "the lease is renewed over another connection",
      );
      const again = holder.locks.acquire(key, { ttlMs: 60_000 });
      await waitUntil(async () => (await inspected(waiter.locks, key)) === 1, "the waiter is queued again");
      expect(await next.release()).toBe(true);
      expect(await (await again).release()).toBe(true);
    },
  );

  test.each([
    ["ioredis 6", { retryStrategy: () => null }],
    ["ioredis 5", { retryStrategy: () => null }],
    ["node-redis 6", { socket: { reconnectStrategy: false } }],
    ["node-redis 5", { socket: { reconnectStrategy: false } }],
    ["node-redis 4", { socket: { reconnectStrategy: false } }],
  ])(
    "%s that does not reconnect: every call reports that, until it is connected again",
    async (library, settings) => {
      const { locks, proxy, client } = await user(library, settings);
      const lease = await locks.acquire(newKey(), { ttlMs: 60_000 });
      const lost = await locks.acquire(newKey(), { ttlMs: 500 });
      proxy.cut();
      await abortOf(lost.signal);
      expect(reasonOf(lost.signal)).toMatch(/engine-unreachable|expired/);
      const { error } = await rejection(locks.acquire(newKey(), { waitMs: 500 }));
      expect(error).toMatchObject({ code: "engine-unavailable", retryable: true });
      await (client as object as { connect(): Promise<unknown> }).connect();
      await waitUntil(
        async () => (await locks.admin.nodes())[0]?.notifications === "verified",
        "notifications are verified again",
      );
      expect(await lease.release()).toBe(true);
    },
  );

  test("node-redis 4 in its legacy mode, whose calls return nothing, is refused", () => {
    const client = createClient4({ legacyMode: true });
    expect(() => redis(client)).toThrow("Expected `client` to be without `legacyMode`");
    expect(() => redis(client.v4 as unknown as RedisClient)).toThrow("Expected `client`");
  });

  test("ioredis whose Sentinel leads to a replica is refused", () => {
    const sentinels = [{ host: "127.0.0.1", port: 1 }];
    const client = new Ioredis6({ sentinels, name: "primary", role: "slave", lazyConnect: true });
    expect(() => redis(client)).toThrow(
      'Expected `client` to lead to the primary, got one with `role: "slave"`',
    );
  });

  test("node-redis 6 with a prefix that is no text is refused", () => {
    const client = createClient6({ keyPrefix: Buffer.from([0xff]) });
    expect(() => redis(client)).toThrow("Expected the `keyPrefix` of `client` to be well-formed UTF-8");
  });
});

interface User {
  readonly locks: Locks;
  readonly proxy: Proxy;
  readonly client: RedisClient;
}

async function user(library: string, settings: Settings): Promise<User> {
  const proxy = await ownProxy(shared);
  const client = await (libraries[library] as (typeof libraries)[string])(proxy.port, settings);
  const locks = createLocks(redis(client), { closeTimeoutMs: 1_000 });
  onCleanup(() => locks.close());
  await locks.withLock(newKey(), () => undefined);
  await waitUntil(
    async () => (await locks.admin.nodes())[0]?.notifications === "verified",
    "notifications are verified",
  );
  return { locks, proxy, client };
}

async function inspected(locks: Locks, key: string): Promise<number | undefined> {
  return locks.inspect(key).then(
    ({ waiterCount }) => waiterCount,
    () => undefined,
  );
}

async function keysOf(settings: Settings): Promise<string[]> {
  const database = (settings["db"] ?? settings["database"] ?? 0) as number;
  const probe = shared.client({ db: database });
  return probe.keys("*");
}

async function ioredis(client: Ioredis6 | Ioredis5): Promise<RedisClient> {
  client.on("error", () => undefined);
  onCleanup(() => {
    client.disconnect();
  });
  if (!client.options.lazyConnect && client.options.enableOfflineQueue === false) {
    await new Promise((resolve) => client.once("ready", resolve));
  }
  return client;
}

async function nodeRedis(
  create: (options: never) => unknown,
  port: number,
  settings: Settings,
): Promise<RedisClient> {
  const socket = { host: "127.0.0.1", port, ...(settings["socket"] as object | undefined) };
  const client = create({ ...settings, socket } as never) as ReturnType<typeof createClient6>;
  client.on("error", () => undefined);
  onCleanup(() => {
    if ("destroy" in client) {
      client.destroy();
    } else {
      void (client as { disconnect(): Promise<void> }).disconnect();
    }
  });
  await client.connect();
  return client;
}
