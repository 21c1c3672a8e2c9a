import type { Locks } from "holdfast";
import type { RedisOptions } from "holdfast/redis";
import { describe, expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  reasonOf,
  shared,
  slackMs,
} from "../../support/fault-fixture.ts";

const megabyte = 1_000_000;
const ttlMs = 60_000;
const thread = "1f3a2b4c-0d5e-4f60-8a7b-9c0d1e2f3a4b:57";
const prefix = "lock:";

/** Writes a value of another program. */
const values: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
  "a string": (name) => direct.set(name, "another program"),
  "an empty string": (name) => direct.set(name, ""),
  "a string of 1 MB": (name) => direct.set(name, "x".repeat(megabyte)),
  "a binary string": (name) => direct.set(name, Buffer.from([0, 255, 10, 13, 34, 92, 128, 0])),
  "a number": (name) => direct.set(name, "1"),
  "a list": (name) => direct.rpush(name, "one", "two"),
  "a set": (name) => direct.sadd(name, "one", "two"),
  "a sorted set": (name) => direct.zadd(name, 1, "one", 2, "two"),
  "a hash": (name) => direct.hset(name, "field", "1"),
  "a hash with a field of 1 MB": (name) => direct.hset(name, "field", "x".repeat(megabyte)),
  "a hash with 10 000 fields": (name) =>
    direct.hset(name, ...Array.from({ length: 10_000 }, (_, n) => [`${thread}${n}`, "1"]).flat()),
  "a lock of Redisson": (name) => direct.hset(name, thread, "1"),
  "a stream": (name) => direct.xadd(name, "*", "field", "value"),
};

/** The types that may replace a lock without a change of the key's type. */
const strings = ["a string", "an empty string", "a string of 1 MB", "a binary string", "a number"];
const otherTypes = ["a list", "a set", "a sorted set", "a hash", "a stream"];

const settings: Readonly<Record<string, RedisOptions>> = {
  "by default": {},
  "with `observe`": { observe: ["redisson"] },
};

/** The calls that must not grant a lock whose key has a foreign value. */
const calls: Readonly<Record<string, (locks: Locks, key: string) => Promise<unknown>>> = {
  tryAcquire: (locks, key) => locks.tryAcquire(key),
  "all().tryAcquire": (locks, key) => locks.all([key, `${key}:free`]).tryAcquire(),
  "readWrite().read.tryAcquire": async (locks, key) => locks.readWrite(key).read.tryAcquire(),
  "readWrite().write.tryAcquire": async (locks, key) => locks.readWrite(key).write.tryAcquire(),
  "semaphore().tryAcquire": async (locks, key) => locks.semaphore(key, { limit: 2 }).tryAcquire(),
  "latch().countDown": async (locks, key) => locks.latch(key, { count: 2, ttlMs }).countDown(),
  breakLock: (locks, key) => locks.admin.breakLock(key, { fencingToken: 1n, reason: "test" }),
  checkFence: (locks, key) => locks.checkFence(key, 1n),
  inspect: (locks, key) => locks.inspect(key),
  list: async (locks, key) => (await locks.admin.list()).locks.find((lock) => lock.key === key) ?? null,
};

const refusals = ["wait-timeout", "kind-mismatch", "limit-mismatch", "unsupported"];

onSharedRedis("a value of another program", () => {
  describe.each(Object.entries(settings))("%s", (_text, options) => {
    test.each(Object.keys(values))("%s is neither granted nor changed", async (type) => {
      const locks = open(connect(shared.port), options);
      await Promise.all([ttlMs, undefined].map((remaining) => refused(locks, type, remaining)));
    });

    test.each(otherTypes)(
      "%s in place of a held lock is a loss at the next extension, and stays",
      async (type) => {
        const locks = open(connect(shared.port), options);
        const key = newKey();
        const lease = await locks.acquire(key, { ttlMs });
        await direct.del(prefix + key);
        const before = await write(type, prefix + key, undefined);
        const { error } = await rejection(lease.extend());
        expect(error).toMatchObject({ code: "lease-lost", reason: "stolen" });
        expect(lease.signal.aborted).toBe(true);
        expect(await lease.release()).toBe(false);
        expect(await valueOf(prefix + key)).toEqual(before);
        await direct.del(prefix + key);
      },
    );

    test.each(strings)("%s in place of a held lock is a loss, and stays", async (type) => {
      const locks = open(connect(shared.port), options);
      const keys = Array.from({ length: 3 }, newKey) as [string, string, string];
      const [extended, released, moved] = [
        await locks.acquire(keys[0], { ttlMs }),
        await locks.acquire(keys[1], { ttlMs }),
        await locks.acquire(keys[2], { ttlMs }),
      ];
      const transferred = moved.transfer();
      await direct.del(keys.map((key) => prefix + key));
      const before = await Promise.all(keys.map((key) => write(type, prefix + key, undefined)));

      expect((await rejection(extended.extend())).error).toMatchObject({ code: "lease-lost" });
      await waitUntil(() => Promise.resolve(extended.signal.aborted), "the loss is reported");
      expect(reasonOf(extended.signal)).toMatch(/^(stolen|expired)$/);
      expect(await extended.release()).toBe(false);
      expect(await released.release()).toBe(false);
      const { fencingToken } = moved;
      expect(await locks.admin.breakLock(keys[2], { fencingToken, reason: "test" })).toBe(false);
      expect(await locks.checkFence(keys[2], fencingToken)).toBe("stale");
      expect((await rejection(locks.adopt(transferred))).error).toMatchObject({ code: "lease-lost" });

      const after = await Promise.all(keys.map((key) => valueOf(prefix + key)));
      expect(after).toEqual(before);
      await direct.del(keys.map((key) => prefix + key));
    });
  });
});

/** Each call refuses a foreign value, and none changes it. The wait goes on beside the other calls, for long enough that the server answers. */
async function refused(locks: Locks, type: string, remainingMs: number | undefined): Promise<void> {
  const key = newKey();
  const before = await write(type, prefix + key, remainingMs);
  const acquiring = locks.acquire(key, { waitMs: slackMs }).catch((error: unknown) => error);
  const all: typeof calls = { ...calls, acquire: () => acquiring };
  for (const [name, call] of Object.entries(all)) {
    const answer = await call(locks, key).catch((error: unknown) => error);
    expect(isRefusal(answer), `${name}: ${String(answer)}`).toBe(true);
    expect(await valueOf(prefix + key), name).toEqual(before);
  }
  expect((await direct.pttl(prefix + key)) > 0).toBe(remainingMs !== undefined);
  await direct.del(prefix + key);
}

/** @returns the stored value */
async function write(type: string, name: string, remainingMs: number | undefined): Promise<string> {
  await values[type]?.(name);
  if (remainingMs !== undefined) {
    await direct.pexpire(name, remainingMs);
  }
  return valueOf(name);
}

/** The value of a key, as stored by the server. The order of a large hash changes while the server resizes its table. */
async function valueOf(name: string): Promise<string> {
  if ((await direct.type(name)) === "hash") {
    const fields = Object.entries(await direct.hgetall(name)).map((entry) => entry.join("="));
    return fields.sort().join();
  }
  return (await direct.dumpBuffer(name))?.toString("base64") ?? "";
}

/** No grant and no state of a grant, or an error of the library. */
function isRefusal(answer: unknown): boolean {
  if (answer instanceof Error) {
    return refusals.includes((answer as { code?: string }).code ?? "");
  }
  return answer === null || answer === false || answer === "stale" || isForeignState(answer);
}

/** The state of a lock whose holders have no fencing token. */
function isForeignState(answer: unknown): boolean {
  const { holders = [] } = answer as { holders?: readonly { readonly fencingToken?: bigint }[] };
  return holders.length > 0 && holders.every(({ fencingToken }) => fencingToken === undefined);
}
