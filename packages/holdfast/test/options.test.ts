import { FakeRedis } from "@holdfast/test-kit/fake-redis";
import { createLocks, isLockError, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { redis, redlock, type Connection, type RedisClient } from "holdfast/redis";
import { manualClock } from "holdfast/testing";
import { Cluster, Redis } from "ioredis";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { afterAll, beforeAll, expect, test } from "vitest";

type Refused = typeof TypeError | typeof RangeError;

let locks: Locks;
let client: Redis;

beforeAll(() => {
  locks = createLocks(memory({ clock: manualClock() }));
  client = new Redis({ lazyConnect: true });
});

afterAll(async () => {
  client.disconnect();
  await locks.close();
});

/** Asserts that a call throws, not rejects, and that the message has the name, what was expected, and the value. */
function refuses(call: () => unknown, kind: Refused, ...words: string[]): void {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    expect(error).toBeInstanceOf(kind);
    for (const word of words) {
      expect((error as Error).message).toContain(word);
    }
    return;
  }
  if (result instanceof Promise) {
    result.catch(() => undefined);
    expect.unreachable(`did not throw synchronously: ${words.join(", ")}`);
  }
  expect.unreachable(`was accepted: ${words.join(", ")}`);
}

const badKeys: [name: string, key: unknown, kind: Refused, shown: string][] = [
  ["an empty key", "", RangeError, '"" (string)'],
  ["a key of 513 bytes", "a".repeat(513), RangeError, "(string)"],
  ["a key of 257 letters of two bytes", "é".repeat(257), RangeError, "(string)"],
  ["a key of 171 letters of three bytes", "€".repeat(171), RangeError, "(string)"],
  ["a number as key", 5, TypeError, "5 (number)"],
  ["no key", undefined, TypeError, "undefined (undefined)"],
  ["null as key", null, TypeError, "null (null)"],
  ["an object as key", { key: "a" }, TypeError, "(object)"],
  ["a key with half of a surrogate pair", "order:\ud83d", RangeError, "(string)"],
];

test.each(badKeys)("%s is refused by every call", (_name, bad, kind, shown) => {
  const key = bad as string;
  const calls: (() => unknown)[] = [
    () => locks.acquire(key),
    () => locks.tryAcquire(key),
    () => locks.withLock(key, () => 1),
    () => locks.tryWithLock(key, () => 1),
    () => locks.mutex(key),
    () => locks.inspect(key),
    () => locks.checkFence(key, 1n),
    () => locks.breakLock(key, { fencingToken: 1n, reason: "test" }),
  ];
  for (const call of calls) {
    refuses(call, kind, "Expected `key` to be a string of 1 to 512 bytes of well-formed UTF-8", shown);
  }
});

test("keys of exactly 512 bytes, of any script, are good", async () => {
  for (const key of ["a".repeat(512), "é".repeat(256), "😀".repeat(128), " ", "\0"]) {
    expect(await locks.withLock(key, () => "ran")).toBe("ran");
  }
});

const integer = "an integer from 100 to 86400000";
const duration = (least: number): string => `a whole number of ms from ${least}, or Infinity`;
const badOptions: [name: string, value: unknown, kind: Refused, expected: string, shown: string][] = [
  ["ttlMs", 0, RangeError, integer, "0 (number)"],
  ["ttlMs", 99, RangeError, integer, "99 (number)"],
  ["ttlMs", -1, RangeError, integer, "-1 (number)"],
  ["ttlMs", NaN, RangeError, integer, "NaN (number)"],
  ["ttlMs", 1e9, RangeError, integer, "1000000000 (number)"],
  ["ttlMs", Infinity, RangeError, integer, "Infinity (number)"],
  ["ttlMs", 100.5, RangeError, integer, "100.5 (number)"],
  ["ttlMs", "5000", TypeError, integer, '"5000" (string)'],
  ["ttlMs", 5000n, TypeError, integer, "5000 (bigint)"],
  ["ttlMs", null, TypeError, integer, "null (null)"],
  ["ttlMs", Object.create(null), TypeError, integer, "(object)"],
  ["waitMs", -1, RangeError, duration(0), "-1 (number)"],
  ["waitMs", 0.5, RangeError, duration(0), "0.5 (number)"],
  ["waitMs", NaN, RangeError, duration(0), "NaN (number)"],
  ["waitMs", -Infinity, RangeError, duration(0), "-Infinity (number)"],
  ["waitMs", "1", TypeError, duration(0), '"1" (string)'],
  ["maxHoldMs", 0, RangeError, duration(1), "0 (number)"],
  ["maxHoldMs", 1.5, RangeError, duration(1), "1.5 (number)"],
  ["renew", 1, TypeError, "true or false", "1 (number)"],
  ["ifLost", "ignore", RangeError, '"abort" or "continue"', '"ignore" (string)'],
  ["signal", {}, TypeError, "an AbortSignal", "(object)"],
  ["signal", new AbortController(), TypeError, "an AbortSignal", "(object)"],
  ["owner", "", RangeError, "a string of 1 to 512 bytes", '"" (string)'],
  ["owner", 7, TypeError, "a string of 1 to 512 bytes", "7 (number)"],
  ["reason", "a".repeat(1_025), RangeError, "a string of 1 to 1024 bytes", "(string)"],
  ["attemptId", "", RangeError, "a string of 1 to 512 bytes", '"" (string)'],
  ["labels", [], TypeError, "an object", "(object)"],
  ["labels", "a", TypeError, "an object", '"a" (string)'],
];

test.each(badOptions)("%s: %o is refused with its name and value", (name, value, kind, expected, shown) => {
  const options = { [name]: value };
  const words = [`Expected \`${name}\` to be ${expected}`, `got`, shown];
  const lock = locks.mutex("k");
  const calls: (() => unknown)[] = [
    () => locks.acquire("k", options),
    () => locks.withLock("k", options, () => 1),
    () => lock.acquire(options),
    () => lock.withLock(options, () => 1),
  ];
  if (name === "attemptId") {
    // One attempt is one acquire: it is no default.
    refuses(() => locks.mutex("k", options), TypeError, "`attemptId`");
    refuses(() => createLocks(memory(), { defaults: options }), TypeError, "`attemptId`");
  } else {
    calls.push(
      () => locks.mutex("k", options),
      () => createLocks(memory(), { defaults: options }),
    );
  }
  if (name !== "waitMs") {
    calls.push(() => locks.tryAcquire("k", options));
  }
  for (const call of calls) {
    refuses(call, kind, ...words);
  }
});

test("tryWithLock throws for a bad option at once, as every call does", () => {
  refuses(() => locks.tryWithLock("k", { ttlMs: 0 }, () => 1), RangeError, "`ttlMs`", "0 (number)");
  refuses(() => locks.mutex("k").tryWithLock({ ttlMs: 0 }, () => 1), RangeError, "`ttlMs`");
  refuses(() => locks.tryWithLock("k", undefined as never), TypeError, "`work`", "a function");
});

test("extend throws for a bad TTL at once", async () => {
  await using lease = await locks.acquire("extend");
  refuses(() => lease.extend(0), RangeError, "`ttlMs`", "0 (number)");
});

test("labels are few and short", () => {
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`l${index}`, "x"]));
  refuses(() => locks.acquire("k", { labels: many }), RangeError, "`labels`", "at most 32", "33");
  refuses(() => locks.acquire("k", { labels: { a: 5 as never } }), TypeError, "`labels.a`", "5 (number)");
  refuses(() => locks.acquire("k", { labels: { ["x".repeat(65)]: "v" } }), RangeError, "`label name`");
});

test("an unknown option is a mistake, never silently the default", () => {
  const misspelt = { ttl: 5_000 } as object;
  refuses(() => locks.acquire("k", misspelt), TypeError, "Unknown option `ttl`", "ttlMs");
  refuses(() => locks.tryAcquire("k", { waitMs: 5 } as object), TypeError, "Unknown option `waitMs`");
  refuses(() => locks.withLock("k", misspelt, () => 1), TypeError, "Unknown option `ttl`");
  refuses(() => locks.mutex("k", misspelt), TypeError, "Unknown option `ttl`");
  refuses(() => locks.list({ pre: "" } as object), TypeError, "Unknown option `pre`");
  refuses(() => locks.watch("k", { stop: 1 } as object), TypeError, "Unknown option `stop`");
  refuses(() => createLocks(memory(), misspelt), TypeError, "Unknown option `ttl`");
  refuses(() => createLocks(memory(), { handover: { most: 1 } as object }), TypeError, "`most`");
  refuses(() => memory({ now: 1 } as object), TypeError, "Unknown option `now`");
  refuses(() => redis(client, { commandTimeout: 1 } as object), TypeError, "Unknown option `commandTimeout`");
});

test("options that are no object are refused", () => {
  for (const options of [5, "1000", null, [], () => 1] as unknown as object[]) {
    refuses(() => locks.acquire("k", options), TypeError, "Expected `options` to be an object");
  }
  refuses(() => locks.withLock("k", 5_000 as never, () => 1), TypeError, "`options`", "5000 (number)");
  refuses(() => locks.withLock("k", undefined as never), TypeError, "`work`", "a function", "undefined");
});

test("null is no way to say nothing", () => {
  const nothing = null as never;
  refuses(() => createLocks(memory(), nothing), TypeError, "`options`", "null");
  refuses(() => locks.list(nothing), TypeError, "`options`", "null");
  refuses(() => locks.watch("k", nothing), TypeError, "`options`", "null");
  refuses(() => redis(client, nothing), TypeError, "`options`", "null");
  refuses(() => redis(client, { commandTimeoutMs: nothing }), TypeError, "`commandTimeoutMs`", "null");
  refuses(() => createLocks(memory(), { handover: nothing }), TypeError, "`handover`", "null");
});

const badLocksOptions: [name: string, options: object, kind: Refused, expected: string, shown: string][] = [
  ["handover", { handover: true }, TypeError, "an object", "true (boolean)"],
  ["handover.max", { handover: { max: -1 } }, RangeError, "an integer from 0", "-1 (number)"],
  ["handover.max", { handover: { max: 1.5 } }, RangeError, "an integer from 0", "1.5 (number)"],
  ["handover.maxMs", { handover: { maxMs: "1" } }, TypeError, "an integer from 0", '"1" (string)'],
  ["maxWaiters", { maxWaiters: 0 }, RangeError, "an integer from 1", "0 (number)"],
  ["maxWaiters", { maxWaiters: Infinity }, RangeError, "an integer from 1", "Infinity (number)"],
  ["closeTimeoutMs", { closeTimeoutMs: -1 }, RangeError, "an integer from 0", "-1 (number)"],
  ["closeTimeoutMs", { closeTimeoutMs: 2 ** 40 }, RangeError, "an integer from 0", "(number)"],
  ["owner", { owner: "" }, RangeError, "a string of 1 to 512 bytes", '"" (string)'],
];

test.each(badLocksOptions)("createLocks refuses a bad %s (%o)", (name, options, kind, expected, shown) => {
  refuses(() => createLocks(memory(), options), kind, `\`${name}\``, expected, shown);
});

const badRedisOptions: [name: string, options: object, kind: Refused, expected: string, shown: string][] = [
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
  refuses(() => redis(client, options), kind, `\`${name}\``, expected, shown);
});

test("a prefix that a client adds cannot lead into our own name space either", () => {
  const connection: Connection = {
    keyPrefix: "hold",
    name: "a connection of one's own",
    run: () => Promise.reject(new Error("nobody is there")),
    command: () => Promise.reject(new Error("nobody is there")),
    subscribe: () => ({ close: () => undefined }),
    onDown: () => () => undefined,
  };
  refuses(() => redis(connection, { prefix: "fast:" }), RangeError, "`prefix`", '"holdfast:"');
  expect(redis(connection).capabilities.guarantee).toBe("server");
});

test("a client with a key prefix of its own is taken", () => {
  const prefixed = new Redis({ lazyConnect: true, keyPrefix: "app:" });
  expect(redis(prefixed).capabilities.guarantee).toBe("server");
  prefixed.disconnect();
});

test("with an empty prefix a key cannot lead into our own name space", async () => {
  await using own = createLocks(redis(client, { prefix: "" }));
  refuses(() => own.acquire("holdfast:queue:{x}"), RangeError, "`key`", '"holdfast:queue:{x}"');
});

test("what is no client of one server is refused", () => {
  for (const [bad, shown] of [
    [undefined, "undefined"],
    [null, "null"],
    ["redis://user:secret@localhost", "got a string"], // a URL may hold a password
    [{}, "(object)"],
    [{ get: () => 1, set: () => 1 }, "(object)"],
  ] as const) {
    refuses(() => redis(bad as never), TypeError, "`client`", "an ioredis or node-redis client", shown);
  }
});

test("a pool is refused, as it keeps no order", () => {
  refuses(() => redis(createClientPool() as never), TypeError, "`client`", "one connection", "a pool");
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

test("undefined means the default, by every name", async () => {
  const nothing = undefined;
  await using own = createLocks(memory(), {
    handover: nothing,
    owner: nothing,
    maxWaiters: nothing,
    closeTimeoutMs: nothing,
    defaults: nothing,
  });
  await using lease = await own.acquire("k", {
    ttlMs: nothing,
    waitMs: nothing,
    signal: nothing,
    renew: nothing,
    maxHoldMs: nothing,
    ifLost: nothing,
    owner: nothing,
    reason: nothing,
    labels: nothing,
    attemptId: nothing,
  });
  expect(lease.remainingMs()).toBeGreaterThan(29_000);
  expect(lease.remainingMs()).toBeLessThanOrEqual(30_000 - 302);
});

test("defaults are of the instance, then of the mutex, then of the call", async () => {
  const driver = memory({ clock: manualClock() });
  await using own = createLocks(driver, { owner: "me", defaults: { ttlMs: 1_000, reason: "general" } });
  const left: number[] = [];
  const lock = own.mutex("k", { ttlMs: 2_000 });
  for (const call of [() => own.acquire("k"), () => lock.acquire(), () => lock.acquire({ ttlMs: 4_000 })]) {
    await using lease = await call();
    left.push(lease.remainingMs());
    expect((await own.inspect("k")).holders).toMatchObject([{ owner: "me", reason: "general" }]);
  }
  expect(left).toEqual([1_000 - 12, 2_000 - 22, 4_000 - 42]);
});

test("bad numbers and texts of the other calls are refused as well", () => {
  refuses(() => locks.checkFence("k", 5 as never), TypeError, "`fencingToken`", "5 (number)");
  refuses(() => locks.checkFence("k", -5n), RangeError, "`fencingToken`", "-5 (bigint)");
  refuses(
    () => locks.breakLock("k", { fencingToken: 1n } as never),
    TypeError,
    "`reason`",
    "undefined (undefined)",
  );
  refuses(() => locks.list({ limit: 0 }), RangeError, "`limit`", "0 (number)");
  refuses(() => locks.list({ limit: 1_001 }), RangeError, "`limit`", "1001 (number)");
  refuses(() => locks.watch(5 as never), TypeError, "`target`", "5 (number)");
  refuses(() => locks.breakLock("k", undefined as never), TypeError, "`options`", "undefined");
});

test("a serialized lease is checked, and its token is never shown", () => {
  const good = {
    version: 1,
    key: "k",
    token: "secret",
    fencingToken: "5",
    owner: "me",
    ttlMs: 1_000,
  } as const;
  const bad: [change: object, kind: Refused, name: string][] = [
    [{ version: 2 }, TypeError, "`serialized.version`"],
    [{ token: 5 }, TypeError, "`serialized.token`"],
    [{ token: "" }, TypeError, "`serialized.token`"],
    [{ fencingToken: 5 }, TypeError, "`serialized.fencingToken`"],
    [{ fencingToken: "0x5" }, RangeError, "`serialized.fencingToken`"],
    [{ owner: "" }, RangeError, "`serialized.owner`"],
    [{ ttlMs: 1 }, RangeError, "`serialized.ttlMs`"],
    [{ key: "" }, RangeError, "`key`"],
    [{ more: 1 }, TypeError, "`more`"],
  ];
  for (const [change, kind, name] of bad) {
    refuses(() => locks.adopt({ ...good, ...change } as never), kind, name);
    expect(() => locks.adopt({ ...good, ...change } as never)).not.toThrow("secret");
  }
  refuses(() => locks.adopt(null as never), TypeError, "`serialized`", "null");
  refuses(() => locks.adopt(good, { renew: 1 } as never), TypeError, "`renew`");
});
