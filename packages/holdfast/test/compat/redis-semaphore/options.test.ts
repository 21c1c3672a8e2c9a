import {
  defaultTimeoutOptions,
  MultiSemaphore,
  Mutex,
  RedlockMutex,
  Semaphore,
  type LockOptions,
  type RedisClient,
} from "holdfast/compat/redis-semaphore";
import { Redis } from "ioredis";
import * as original from "redis-semaphore";
import { afterAll, afterEach, describe, expect, test } from "vitest";

import { resolveLock } from "../../../src/compat/redis-semaphore/options.ts";
import { throwsFor } from "../../support/option-errors.ts";

const dayMs = 86_400_000;

describe("the options of holdfast/compat/redis-semaphore", () => {
  const client = new Redis({ lazyConnect: true });
  const defaults = { ...defaultTimeoutOptions };

  afterEach(() => {
    Object.assign(defaultTimeoutOptions, defaults);
  });

  afterAll(() => client.disconnect());

  test("have the defaults of redis-semaphore", () => {
    expect(defaultTimeoutOptions).toEqual(original.defaultTimeoutOptions);
    const settings = { ttlMs: 10_000, waitMs: 10_000, renew: true, isExternal: false };
    expect(resolveLock(undefined, dayMs)).toMatchObject(settings);
    expect(resolveLock({ lockTimeout: undefined }, dayMs)).toMatchObject(settings);
  });

  test("read defaultTimeoutOptions for each lock", () => {
    defaultTimeoutOptions.lockTimeout = 5_000;
    expect(resolveLock({}, dayMs).ttlMs).toBe(5_000);
  });

  test.each<[LockOptions, number]>([
    [{ acquireTimeout: 0 }, 0],
    [{ acquireTimeout: Infinity }, Infinity],
    [{ acquireTimeout: 10.5 }, 11],
    [{ acquireAttemptsLimit: 1 }, 0],
    [{ acquireAttemptsLimit: 1, acquireTimeout: Infinity }, 0],
    [{ acquireAttemptsLimit: 11 }, 100],
    [{ acquireAttemptsLimit: 11, retryInterval: 50 }, 500],
    [{ acquireAttemptsLimit: 1_000_000 }, 10_000],
  ])("%o is a wait of %d ms", (options, waitMs) => {
    expect(resolveLock(options, dayMs).waitMs).toBe(waitMs);
  });

  test("generate a new identifier for each lock, with the suffix", () => {
    const first = new Mutex(client, "key", { identifierSuffix: "host" });
    const second = new Mutex(client, "key", { identifierSuffix: "host" });
    expect(first.identifier).toMatch(/^[\da-f]{32}-host$/);
    expect(first.identifier).not.toBe(second.identifier);
    expect(new Mutex(client, "key", { identifier: "own" }).identifier).toBe("own");
    expect(new Mutex(client, "key", { externallyAcquiredIdentifier: "own" }).identifier).toBe("own");
  });

  test("are checked by the constructor", () => {
    const create = (options: object) => () => new Mutex(client, "key", options as LockOptions);
    throwsFor(create({ lockTimeout: 50 }), RangeError, "lockTimeout", "100", "50");
    throwsFor(create({ lockTimeout: "1000" }), TypeError, "lockTimeout", "1000");
    throwsFor(create({ acquireTimeout: -1 }), TypeError, "acquireTimeout", "-1");
    throwsFor(create({ acquireAttemptsLimit: 0 }), TypeError, "acquireAttemptsLimit", "from 1", "0");
    throwsFor(create({ retryInterval: NaN }), TypeError, "retryInterval", "NaN");
    throwsFor(create({ refreshInterval: -1 }), TypeError, "refreshInterval", "-1");
    throwsFor(create({ identifier: "" }), RangeError, "identifier");
    throwsFor(create({ acquiredExternally: true }), TypeError, "identifier", "acquiredExternally");
    throwsFor(
      create({ externallyAcquiredIdentifier: "a", identifier: "b" }),
      TypeError,
      "externallyAcquiredIdentifier",
    );
    throwsFor(
      () => new RedlockMutex([client], "key", { lockTimeout: 60_001 }),
      RangeError,
      "lockTimeout",
      "60000",
    );
  });

  test("the other arguments are checked by the constructor", () => {
    const none = undefined as unknown as RedisClient;
    throwsFor(() => new Mutex(none, "key"), TypeError, "client");
    for (const key of ["", 1 as unknown as string]) {
      expect(() => new Mutex(client, key)).toThrow(expect.objectContaining({ code: "invalid-key" }));
    }
    throwsFor(() => new Semaphore(client, "key", 0), RangeError, "limit", "0");
    throwsFor(() => new Semaphore(client, "key", "10" as unknown as number), TypeError, "limit", "10");
    throwsFor(() => new MultiSemaphore(client, "key", 2, 3), RangeError, "permits", "3");
    throwsFor(() => new RedlockMutex(none as unknown as RedisClient[], "key"), TypeError, "clients");
    throwsFor(() => new RedlockMutex([], "key"), TypeError, "clients");
  });
});
