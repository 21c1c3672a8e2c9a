import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, isLockError } from "holdfast";
import { redis, redlock, type Connection, type RedisClient } from "holdfast/redis";
import { manualClock } from "holdfast/testing";
import { Cluster, Redis } from "ioredis";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { afterAll, beforeAll, expect, test } from "vitest";

import { throwsFor, type ErrorKind } from "../../support/option-errors.ts";

let client: Redis;

beforeAll(() => {
  client = new Redis({ lazyConnect: true });
});

afterAll(() => {
  client.disconnect();
});

const badRedisOptions: [name: string, options: object, kind: ErrorKind, expected: string, shown: string][] = [
  ["commandTimeoutMs", { commandTimeoutMs: 9 }, RangeError, "an integer from 10", "9 (number)"],
  ["commandTimeoutMs", { commandTimeoutMs: "2000" }, TypeError, "an integer from 10", '"2000" (string)'],
  ["commandTimeoutMs", { commandTimeoutMs: Infinity }, RangeError, "an integer from 10", "Infinity"],
  ["claimMs", { claimMs: 99 }, RangeError, "an integer from 100", "99 (number)"],
  ["maxQueue", { maxQueue: 0 }, RangeError, "an integer from 1", "0 (number)"],
  ["minReplicas", { minReplicas: -1 }, RangeError, "an integer from 0 to 100", "-1 (number)"],
  ["minReplicas", { minReplicas: true }, TypeError, "an integer from 0 to 100", "true (boolean)"],
  ["prefix", { prefix: 5 }, TypeError, "a string", "5 (number)"],
  ["prefix", { prefix: "holdfast:mine:" }, RangeError, 'not to begin with "holdfast:"', "holdfast:mine:"],
];

test.each(badRedisOptions)("redis() refuses a bad %s (%o)", (name, options, kind, expected, shown) => {
  throwsFor(() => redis(client, options), kind, `\`${name}\``, expected, shown);
});

test("a prefix that a client adds cannot lead into our own name space either", () => {
  const connection: Connection = {
    keyPrefix: "hold",
    name: "a connection of one's own",
    run: () => Promise.reject(new Error("no server is there")),
    command: () => Promise.reject(new Error("no server is there")),
    subscribe: () => ({ close: () => undefined }),
    onDown: () => () => undefined,
  };
  throwsFor(() => redis(connection, { prefix: "fast:" }), RangeError, "`prefix`", '"holdfast:"');
  expect(redis(connection).capabilities.guarantee).toBe("server");
});

test("a client with a key prefix of its own is taken", () => {
  const prefixed = new Redis({ lazyConnect: true, keyPrefix: "app:" });
  expect(redis(prefixed).capabilities.guarantee).toBe("server");
  prefixed.disconnect();
});

test("with an empty prefix a key cannot lead into our own name space", async () => {
  await using own = createLocks(redis(client, { prefix: "" }));
  const key = "holdfast:queue:{x}";
  const message = `The key "${key}" must not begin with "holdfast:", which is reserved`;
  await expect(own.acquire(key)).rejects.toMatchObject({ code: "invalid-key", key, message });
});

test("what is no client of one server is refused", () => {
  for (const [bad, shown] of [
    [undefined, "undefined"],
    [null, "null"],
    ["redis://user:secret@localhost", "got a string"], // a URL may hold a password
    [{}, "(object)"],
    [{ get: () => 1, set: () => 1 }, "(object)"],
  ] as const) {
    throwsFor(() => redis(bad as never), TypeError, "`client`", "an ioredis or node-redis client", shown);
  }
});

test("a pool is refused, as it keeps no order", () => {
  throwsFor(() => redis(createClientPool() as never), TypeError, "`client`", "one connection", "a pool");
});

test("a cluster is refused with minReplicas: to wait for replicas is a matter of one server", () => {
  const cluster = new Cluster([{ host: "127.0.0.1", port: 1 }], { lazyConnect: true });
  const others = [cluster, createCluster({ rootNodes: [{ url: "redis://127.0.0.1:1" }] })];
  for (const other of others as unknown as RedisClient[]) {
    expect(() => redis(other, { minReplicas: 1 })).toThrow(
      expect.toSatisfy((error: unknown) => isLockError(error, "unsupported")),
    );
  }
  cluster.disconnect();
});

test("a client that has no connection to wait for replicas on is refused with minReplicas", () => {
  const connection = new FakeRedis({ clock: manualClock() }).connect();
  expect(() => redis(connection, { minReplicas: 1 })).toThrow(
    expect.toSatisfy((error: unknown) => isLockError(error, "unsupported")),
  );
});

const sentinels = [{ host: "127.0.0.1", port: 1 }];

test("a client that goes by sentinels is no node of a quorum", () => {
  const ioredis = new Redis({ sentinels, name: "main", lazyConnect: true });
  const nodeRedis = createSentinel({ name: "main", sentinelRootNodes: sentinels });
  for (const follower of [ioredis, nodeRedis]) {
    expect(() => redlock([follower])).toThrow(
      expect.toSatisfy((error: unknown) => isLockError(error, "unsupported")),
    );
  }
});

test("clients of one server are taken, connected or not", () => {
  expect(redis(client).capabilities.guarantee).toBe("server");
  expect(redis(createClient() as unknown as RedisClient).capabilities.guarantee).toBe("server");
});
