import { createLocks, isLockError, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { redis } from "holdfast/redis";
import { manualClock } from "holdfast/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rejection } from "@holdfast/test-kit";

import { throwsFor, type ErrorKind } from "./support/option-errors.ts";

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

const badKeys: readonly [name: string, value: unknown, message: string][] = [
  ["an empty key", "", 'The key "" has 0 bytes;'],
  ["a key of 513 bytes", "a".repeat(513), `The key "${"a".repeat(80)}"… has 513 bytes;`],
  ["a key of 257 letters of two bytes", "é".repeat(257), "has 514 bytes;"],
  ["a key of 171 letters of three bytes", "€".repeat(171), "has 513 bytes;"],
  ["a number as key", 5, "The key 5 is no string;"],
  ["no key", undefined, "The key undefined is no string;"],
  ["null as key", null, "The key null is no string;"],
  ["an object as key", { key: "a" }, "is no string;"],
  ["a key with half of a surrogate pair", "order:\ud83d", "has 9 bytes;"],
];

test.each(badKeys)("%s, which may come from a user, makes every call reject", async (_name, bad, message) => {
  const key = bad as string;
  const calls: (() => Promise<unknown>)[] = [
    () => locks.acquire(key),
    () => locks.tryAcquire(key),
    () => locks.withLock(key, () => 1),
    () => locks.tryWithLock(key, () => 1),
    () => locks.once(key, { keepMs: 1_000, ifCrashed: "free" }, () => 1),
    () => locks.inspect(key),
    () => locks.checkFence(key, 1n),
    () => locks.admin.breakLock(key, { fencingToken: 1n, reason: "test" }),
    () => locks.admin.processes({ key }),
    () => locks.admin.audit({ key }),
  ];
  for (const call of bad === undefined ? calls.slice(0, -2) : calls) {
    const { error } = await rejection(call());
    expect(
      isLockError(error, "invalid-key") && !error.retryable && error.key === undefined,
      String(call),
    ).toBe(true);
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).toContain("a key is a string of 1 to 512 bytes of well-formed UTF-8");
    expect((error as Error).message.length).toBeLessThan(250);
  }
});

test.each(badKeys)("%s makes a call that returns no promise throw", (_name, bad, message) => {
  const key = bad as string;
  const calls: (() => unknown)[] = [
    () => locks.mutex(key),
    () => locks.reentrant(key),
    () => locks.readWrite(key),
    () => locks.semaphore(key, { limit: 1 }),
    () => locks.latch(key, { count: 1, ttlMs: 1_000 }),
    () => locks.election(key),
    () => locks.all([key]),
  ];
  for (const call of calls) {
    expect(call, String(call)).toThrow(
      expect.objectContaining({ code: "invalid-key", message: expect.stringContaining(message) as string }),
    );
  }
});

test.each([
  ["a URL, whose password stays secret", "redis://ada:hidden@localhost", "got string"],
  ["null", null, "got null"],
])("createLocks refuses %s", (_, driver, message) => {
  const create = (): Locks => createLocks(driver as unknown as Parameters<typeof createLocks>[0]);
  expect(create).toThrow(`Expected \`driver\` to be a driver, such as redis(client) or memory(), ${message}`);
  expect(create).not.toThrow("hidden");
});

test("a NUL character in a text about a holder or a break is refused on every engine, because PostgreSQL cannot store it", () => {
  const text = "a\0b";
  for (const options of [
    { owner: text },
    { reason: text },
    { labels: { a: text } },
    { labels: { [text]: "a" } },
  ]) {
    throwsFor(() => locks.acquire("key", options), RangeError, "to be a string without NUL characters");
  }
  const grant = { fencingToken: 1n, reason: "test" };
  throwsFor(
    () => locks.admin.breakLock("key", { ...grant, reason: text }),
    RangeError,
    "`reason`",
    "without NUL",
  );
  throwsFor(() => locks.admin.breakLock("key", { ...grant, by: text }), RangeError, "`by`", "without NUL");
  throwsFor(() => createLocks(memory(), { owner: text }), RangeError, "`owner`", "without NUL");
});

test("keys of exactly 512 bytes are accepted in any script", async () => {
  for (const key of ["a".repeat(512), "é".repeat(256), "😀".repeat(128), " ", "\0"]) {
    expect(await locks.withLock(key, () => "ran")).toBe("ran");
  }
});

const integer = "an integer from 100 to 86400000";
const duration = (least: number): string => `a whole number of ms from ${least}, or Infinity`;
const badOptions: [name: string, value: unknown, kind: ErrorKind, expected: string, shown: string][] = [
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
    // An attemptId names one acquire, so it cannot be a default.
    throwsFor(() => locks.mutex("k", options), TypeError, "`attemptId`");
    throwsFor(() => createLocks(memory(), { defaults: options }), TypeError, "`attemptId`");
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
    throwsFor(call, kind, ...words);
  }
});

test("tryWithLock throws for a bad option at once, as every call does", () => {
  throwsFor(() => locks.tryWithLock("k", { ttlMs: 0 }, () => 1), RangeError, "`ttlMs`", "0 (number)");
  throwsFor(() => locks.mutex("k").tryWithLock({ ttlMs: 0 }, () => 1), RangeError, "`ttlMs`");
  throwsFor(() => locks.tryWithLock("k", undefined as never), TypeError, "`work`", "a function");
});

test("extend throws for a bad TTL at once", async () => {
  await using lease = await locks.acquire("extend");
  throwsFor(() => lease.extend(0), RangeError, "`ttlMs`", "0 (number)");
});

test("labels are few and short", () => {
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`l${index}`, "x"]));
  throwsFor(() => locks.acquire("k", { labels: many }), RangeError, "`labels`", "at most 32", "33");
  throwsFor(() => locks.acquire("k", { labels: { a: 5 as never } }), TypeError, "`labels.a`", "5 (number)");
  throwsFor(() => locks.acquire("k", { labels: { ["x".repeat(65)]: "v" } }), RangeError, "`label name`");
});

test("an unknown option throws", () => {
  const misspelt = { ttl: 5_000 } as object;
  throwsFor(() => locks.acquire("k", misspelt), TypeError, "Unknown option `ttl`", "ttlMs");
  throwsFor(() => locks.tryAcquire("k", { waitMs: 5 } as object), TypeError, "Unknown option `waitMs`");
  throwsFor(() => locks.withLock("k", misspelt, () => 1), TypeError, "Unknown option `ttl`");
  throwsFor(() => locks.mutex("k", misspelt), TypeError, "Unknown option `ttl`");
  throwsFor(() => locks.admin.list({ pre: "" } as object), TypeError, "Unknown option `pre`");
  throwsFor(() => locks.admin.watch("k", { stop: 1 } as object), TypeError, "Unknown option `stop`");
  throwsFor(() => createLocks(memory(), misspelt), TypeError, "Unknown option `ttl`");
  throwsFor(() => createLocks(memory(), { handover: { most: 1 } as object }), TypeError, "`most`");
  throwsFor(() => memory({ now: 1 } as object), TypeError, "Unknown option `now`");
  throwsFor(
    () => redis(client, { commandTimeout: 1 } as object),
    TypeError,
    "Unknown option `commandTimeout`",
  );
});

test("options that are not an object are refused", () => {
  for (const options of [5, "1000", null, [], () => 1] as unknown as object[]) {
    throwsFor(() => locks.acquire("k", options), TypeError, "Expected `options` to be an object");
  }
  throwsFor(() => locks.withLock("k", 5_000 as never, () => 1), TypeError, "`options`", "5000 (number)");
  throwsFor(() => locks.withLock("k", undefined as never), TypeError, "`work`", "a function", "undefined");
});

test("null is refused as a value of any option", () => {
  const nothing = null as never;
  throwsFor(() => createLocks(memory(), nothing), TypeError, "`options`", "null");
  throwsFor(() => locks.admin.list(nothing), TypeError, "`options`", "null");
  throwsFor(() => locks.admin.watch("k", nothing), TypeError, "`options`", "null");
  throwsFor(() => redis(client, nothing), TypeError, "`options`", "null");
  throwsFor(() => redis(client, { commandTimeoutMs: nothing }), TypeError, "`commandTimeoutMs`", "null");
  throwsFor(() => createLocks(memory(), { handover: nothing }), TypeError, "`handover`", "null");
});

const badLocksOptions: [name: string, options: object, kind: ErrorKind, expected: string, shown: string][] = [
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
  throwsFor(() => createLocks(memory(), options), kind, `\`${name}\``, expected, shown);
});

test("undefined means the default for every option", async () => {
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

test("options of the call override those of the mutex, which override those of the instance", async () => {
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
  throwsFor(() => locks.checkFence("k", 5 as never), TypeError, "`fencingToken`", "5 (number)");
  throwsFor(() => locks.checkFence("k", -5n), RangeError, "`fencingToken`", "-5 (bigint)");
  throwsFor(
    () => locks.admin.breakLock("k", { fencingToken: 1n } as never),
    TypeError,
    "`reason`",
    "undefined (undefined)",
  );
  throwsFor(() => locks.admin.list({ limit: 0 }), RangeError, "`limit`", "0 (number)");
  throwsFor(() => locks.admin.list({ limit: 1_001 }), RangeError, "`limit`", "1001 (number)");
  throwsFor(() => locks.admin.watch(5 as never), TypeError, "`target`", "5 (number)");
  throwsFor(() => locks.admin.breakLock("k", undefined as never), TypeError, "`options`", "undefined");
});

test("a serialized lease is checked, and its token is never shown", async () => {
  const good = {
    version: 1,
    key: "k",
    token: "secret",
    fencingToken: "5",
    owner: "me",
    ttlMs: 1_000,
  } as const;
  const bad: [change: object, kind: ErrorKind, name: string][] = [
    [{ version: 2 }, TypeError, "`serialized.version`"],
    [{ token: 5 }, TypeError, "`serialized.token`"],
    [{ token: "" }, TypeError, "`serialized.token`"],
    [{ fencingToken: 5 }, TypeError, "`serialized.fencingToken`"],
    [{ fencingToken: "0x5" }, RangeError, "`serialized.fencingToken`"],
    [{ owner: "" }, RangeError, "`serialized.owner`"],
    [{ ttlMs: 1 }, RangeError, "`serialized.ttlMs`"],
    [{ more: 1 }, TypeError, "`more`"],
  ];
  for (const [change, kind, name] of bad) {
    throwsFor(() => locks.adopt({ ...good, ...change } as never), kind, name);
    expect(() => locks.adopt({ ...good, ...change } as never)).not.toThrow("secret");
  }
  expect((await rejection(locks.adopt({ ...good, key: "" }))).error).toMatchObject({ code: "invalid-key" });
  throwsFor(() => locks.adopt(null as never), TypeError, "`serialized`", "null");
  throwsFor(() => locks.adopt(good, { renew: 1 } as never), TypeError, "`renew`");
});
