import { redis } from "holdfast/redis";
import { describe, expect, test, vi } from "vitest";

import {
  keysOf,
  later,
  describeWaiters,
  open,
  pollMs,
  probe,
  queued,
  server,
  promptMs,
  unique,
} from "../../../support/waiter-fixture.ts";

describeWaiters(() => {
  describe.concurrent("beside other programs,", () => {
    test("a plain SET with NX and PX excludes the library and is excluded by it", async (context) => {
      const key = unique();
      const locks = open(context);
      expect(await probe.set(`lock:${key}`, "theirs", "PX", 30_000, "NX")).toBe("OK");
      expect(await locks.tryAcquire(key)).toBeNull();
      await expect(locks.acquire(key, { waitMs: 1_000 })).rejects.toMatchObject({ code: "wait-timeout" });
      expect(await probe.get(`lock:${key}`)).toBe("theirs");
      await probe.del(`lock:${key}`);
      const lease = await locks.acquire(key);
      expect(await probe.set(`lock:${key}`, "theirs", "PX", 30_000, "NX")).toBeNull();
      await lease.release();
      expect(await probe.set(`lock:${key}`, "theirs", "PX", 30_000, "NX")).toBe("OK");
      await probe.del(`lock:${key}`);
    });

    for (const [expiry, set] of [
      ["that expires", (key: string) => probe.set(key, "theirs", "PX", 60_000)],
      ["that never expires", (key: string) => probe.set(key, "theirs")],
    ] as const) {
      test(`the DEL of a foreign lock ${expiry} is noticed within the poll`, async (context) => {
        const key = unique();
        await set(`lock:${key}`);
        const waiters = [open(context), open(context)].map((locks) => locks.acquire(key, { waitMs: 30_000 }));
        const served = later(Promise.all(waiters.map(async (waiter) => (await waiter).release())));
        await queued(key, 2);
        await probe.del(`lock:${key}`);
        const deleted = performance.now();
        expect(await served).toEqual([true, true]);
        expect(performance.now() - deleted).toBeLessThan(pollMs + promptMs);
      });
    }

    test("the expiry of a foreign lock is noticed at once", async (context) => {
      const key = unique();
      const ttlMs = 600;
      await probe.set(`lock:${key}`, "theirs", "PX", ttlMs);
      const since = performance.now();
      await (await open(context).acquire(key, { waitMs: 30_000 })).release();
      expect(performance.now() - since).toBeLessThan(ttlMs + promptMs);
    });

    const makers: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
      list: (key) => probe.rpush(key, "a", "b"),
      hash: (key) => probe.hset(key, "a", "b"),
      "sorted set": (key) => probe.zadd(key, 1, "a"),
      set: (key) => probe.sadd(key, "a"),
      stream: (key) => probe.xadd(key, "1-1", "a", "b"),
    };
    for (const [type, make] of Object.entries(makers)) {
      test(`a key that is a ${type} is a kind-mismatch, and is not touched`, async (context) => {
        const key = unique();
        await make(`lock:${key}`);
        const before = await probe.dumpBuffer(`lock:${key}`);
        const locks = open(context);
        await expect(locks.tryAcquire(key)).rejects.toMatchObject({ code: "kind-mismatch", key });
        await expect(locks.acquire(key)).rejects.toMatchObject({ code: "kind-mismatch", key });
        await expect(locks.inspect(key)).rejects.toMatchObject({ code: "kind-mismatch", key });
        expect(await probe.dumpBuffer(`lock:${key}`)).toEqual(before);
        expect(await keysOf(key)).toEqual([`lock:${key}`]);
        await probe.del(`lock:${key}`);
      });
    }
  });

  describe.concurrent("the name space", () => {
    test("keeps the keys a and {a} apart", async (context) => {
      const [bare, tagged] = ["", ""].map(() => unique()) as [string, string];
      const keys = [bare, `{${bare}}`, tagged, `{${tagged}}`];
      const [here, there] = [open(context, {}, { prefix: "" }), open(context, {}, { prefix: "" })];
      const leases = await Promise.all(keys.map((key) => here.acquire(key)));
      const waits = keys.map((key) => later(there.acquire(key, { waitMs: 20_000 })));
      await vi.waitFor(async () => {
        const counts = await Promise.all(keys.map(async (key) => (await here.inspect(key)).waiterCount));
        expect(counts).toEqual([1, 1, 1, 1]);
      });
      for (const [i, lease] of leases.entries()) {
        await lease.release();
        const next = await (waits[i] as Promise<typeof lease>);
        expect(next.key).toBe(keys[i]);
        const counts = await Promise.all(keys.map(async (key) => (await here.inspect(key)).waiterCount));
        expect(counts).toEqual(keys.map((_, k) => (k > i ? 1 : 0)));
        await next.release();
      }
    });

    test("of derived keys is closed to prefixes and keys of users", async (context) => {
      const message = /holdfast:/;
      for (const prefix of ["holdfast:", "holdfast:queue:", "holdfast:x"]) {
        expect(() => redis(server.client(), { prefix })).toThrow(message);
        expect(() => redis(server.client({ keyPrefix: prefix }))).toThrow(message);
      }
      expect(() => redis(server.client({ keyPrefix: "hold" }), { prefix: "fast:" })).toThrow(message);
      const locks = open(context, {}, { prefix: "" });
      for (const key of ["holdfast:", "holdfast:queue:{lock:a}", "holdfast:fence:{lock:a}"]) {
        await expect(locks.acquire(key)).rejects.toThrow(message);
        await expect(locks.tryAcquire(key)).rejects.toThrow(message);
        await expect(locks.inspect(key)).rejects.toThrow(message);
      }
      const other = open(context, {}, { prefix: "hold" });
      await expect(other.acquire("fast:queue:{lock:a}")).rejects.toThrow(message);
      expect(await (await locks.acquire("holdfast")).release()).toBe(true);
    });
  });
});
