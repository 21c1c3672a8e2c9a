import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";

import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { redis, type RedisClient, type RedisOptions } from "holdfast/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi, type TestContext } from "vitest";

import { clientLibraries, type ClientLibrary } from "../../support/clients.ts";
import { startProxy, type Proxy } from "../../support/proxy.ts";
import { onRedis, startRedis, type RedisServer } from "../../support/redis-server.ts";
import { Worker } from "../../support/workers.ts";

/** No waiter polls sooner than that for a lock that is held for long. */
const pollMs = 5_000;
/** Served without a poll. Far less than that, but for slow machines. */
const soonMs = 2_000;
const manyWaiters = 5_000;

onRedis("waiters", () => {
  let server: RedisServer;
  let probe: Redis;

  beforeAll(async () => {
    server = await startRedis();
    probe = server.client();
  });

  afterAll(async () => {
    const left = await probe.keys("*");
    await server.stop();
    expect(left.filter((key) => !/^holdfast:(fence|client):/.test(key))).toEqual([]);
  });

  describe.concurrent("whatever dies,", () => {
    test("the next is served at once when the head of the queue was killed", async (context) => {
      const key = unique();
      await using head = await Worker.start("head", server.port);
      const holder = await open(context).acquire(key);
      head.order("acquire", { key });
      await queued(key, 1);
      const next = later(open(context).acquire(key, { waitMs: 20_000 }));
      await queued(key, 2);
      await head.kill();
      const released = performance.now();
      await holder.release();
      await (await next).release();
      expect(performance.now() - released).toBeLessThan(soonMs);
    });

    test("the next is served within a second of the TTL when the holder was killed", async (context) => {
      const key = unique();
      const ttlMs = 1_000;
      await using holder = await Worker.start("holder", server.port);
      await holder.ask("acquire", { key, options: { ttlMs } }, "granted");
      const next = later(open(context).acquire(key, { waitMs: 20_000 }));
      await queued(key, 1);
      await holder.kill();
      const killed = performance.now();
      await (await next).release();
      expect(performance.now() - killed).toBeLessThan(ttlMs + 1_000);
    });

    for (const library of Object.keys(clientLibraries) as ClientLibrary[]) {
      test(`a waiter by ${library} is served when its killed subscription is back`, async (context) => {
        const key = unique();
        const { client, close } = await clientLibraries[library](server.port, { name: key });
        context.onTestFinished(close);
        const holder = await open(context).acquire(key);
        const waiter = later(open(context, {}, {}, client).acquire(key, { waitMs: 20_000 }));
        await queued(key, 1);
        await probe.call("CLIENT", "KILL", "ID", await subscriberOf(key));
        const killed = performance.now();
        await holder.release();
        await (await waiter).release();
        expect(performance.now() - killed).toBeLessThan(soonMs);
      });
    }

    test("waiters keep their places when a holder that may not use channels releases", async (context) => {
      const key = unique();
      await probe.acl("SETUSER", "mute", "on", ">secret", "~*", "+@all", "resetchannels");
      const mute = server.client({ username: "mute", password: "secret" });
      const holder = await open(context, {}, {}, mute).acquire(key);
      const waiter = later(open(context).acquire(key, { waitMs: 20_000 }));
      await queued(key, 1);
      await expect(holder.release()).rejects.toMatchObject({ code: "engine-unavailable" });
      const failed = performance.now();
      await (await waiter).release();
      expect(performance.now() - failed).toBeLessThan(pollMs + soonMs);
    });

    test("SCRIPT FLUSH is not noticed by anybody", async (context) => {
      const key = unique();
      const crews = [open(context), open(context), open(context, { handover: false })];
      let value = 0;
      let flushes = 0;
      let isOver = false;
      const task = async (_: unknown, number: number): Promise<void> => {
        for (let round = 0; round < 50; round++) {
          await (crews[number % crews.length] as Locks).withLock(key, { waitMs: 20_000 }, async () => {
            const seen = value;
            await new Promise(setImmediate);
            value = seen + 1;
          });
        }
      };
      const flushing = (async () => {
        for (; !isOver; flushes++) {
          await probe.script("FLUSH");
        }
      })();
      await Promise.all(Array.from({ length: 8 }, task));
      isOver = true;
      await flushing;
      expect(value).toBe(8 * 50);
      expect(flushes).toBeGreaterThan(20);
    });
  });

  describe("who gives up", () => {
    for (const handover of [undefined, false] as const) {
      const mode = handover === false ? "without" : "with";
      test(`is forgotten, ${manyWaiters} at once ${mode} hand-over`, async (context) => {
        const key = unique();
        await probe.set(`lock:${key}`, "another program's", "PX", 120_000);
        await using worker = await Worker.start("many", server.port, { handover });
        const order = { key, count: manyWaiters, rounds: 3 };
        const { wrong, heapGrowth, timers } = await worker.ask("giveUp", order, "gaveUp");
        expect(wrong).toBe(0);
        expect(timers).toBe(0);
        expect(heapGrowth / 2 ** 20).toBeLessThan(10);
        await probe.del(`lock:${key}`);
        const lease = await open(context).tryAcquire(key);
        expect(await lease?.release()).toBe(true);
        expect(await keysOf(key)).toEqual([`holdfast:fence:{lock:${key}}`]);
      });
    }

    test("leaves nothing on the server, at whatever moment", async (context) => {
      const key = unique();
      await probe.set(`lock:${key}`, "another program's", "PX", 120_000);
      for (const locks of [open(context), open(context, { handover: false })]) {
        const timedOut = Array.from({ length: 40 }, (_, i) => locks.acquire(key, { waitMs: i + 1 }));
        for (const outcome of await Promise.allSettled(timedOut)) {
          // The shortest are over before the server has answered.
          const code = expect.stringMatching(/^(wait-timeout|engine-unavailable)$/) as unknown;
          expect(outcome).toMatchObject({ status: "rejected", reason: { code } });
        }
        for (let turns = 0; turns < 100; turns++) {
          await expect(acquireAndAbort(locks, key, turns % 25)).rejects.toThrow("changed my mind");
        }
        await queued(key, 0);
        expect(await keysOf(key)).toEqual([`lock:${key}`]);
      }
      await probe.del(`lock:${key}`);
    });

    test("leaves a lock free that was just granted", async (context) => {
      const key = unique();
      for (const locks of [open(context), open(context, { handover: false })]) {
        let granted = 0;
        for (let turns = 0; turns < 200; turns++) {
          const outcomes = await Promise.allSettled(
            [turns % 20, turns % 17, turns % 13].map((after) => acquireAndAbort(locks, key, after)),
          );
          granted += outcomes.filter(({ status }) => status === "fulfilled").length;
        }
        expect(granted).toBeGreaterThan(0);
        await vi.waitFor(async () => {
          expect(await keysOf(key)).toEqual([`holdfast:fence:{lock:${key}}`]);
        });
      }
    });
  });

  describe.concurrent("beside other programs,", () => {
    test("a plain SET with NX and PX excludes us and is excluded by us", async (context) => {
      const key = unique();
      const locks = open(context);
      expect(await probe.set(`lock:${key}`, "theirs", "PX", 30_000, "NX")).toBe("OK");
      expect(await locks.tryAcquire(key)).toBeNull();
      await expect(locks.acquire(key, { waitMs: 100 })).rejects.toMatchObject({ code: "wait-timeout" });
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
      test(`the DEL of a lock of theirs ${expiry} is noticed within the poll`, async (context) => {
        const key = unique();
        await set(`lock:${key}`);
        const waiters = [open(context), open(context)].map((locks) => locks.acquire(key, { waitMs: 30_000 }));
        const served = later(Promise.all(waiters.map(async (waiter) => (await waiter).release())));
        await queued(key, 2);
        await probe.del(`lock:${key}`);
        const deleted = performance.now();
        expect(await served).toEqual([true, true]);
        expect(performance.now() - deleted).toBeLessThan(pollMs + soonMs);
      });
    }

    test("the expiry of a lock of theirs is noticed at once", async (context) => {
      const key = unique();
      const ttlMs = 600;
      await probe.set(`lock:${key}`, "theirs", "PX", ttlMs);
      const since = performance.now();
      await (await open(context).acquire(key, { waitMs: 30_000 })).release();
      expect(performance.now() - since).toBeLessThan(ttlMs + soonMs);
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
        expect(() => locks.acquire(key)).toThrow(message);
        expect(() => locks.tryAcquire(key)).toThrow(message);
        expect(() => locks.inspect(key)).toThrow(message);
      }
      expect(() => open(context, {}, { prefix: "hold" }).acquire("fast:queue:{lock:a}")).toThrow(message);
      expect(await (await locks.acquire("holdfast")).release()).toBe(true);
    });
  });

  describe("who cannot hear", () => {
    test("does not queue before its subscription is proved", async (context) => {
      const key = unique();
      const proxy = await through(context);
      proxy.holdBack(/ssubscribe/i);
      await polls(context, key, proxy, async () => {
        proxy.letGo();
        await queued(key, 1);
      });
    });

    test("does not queue before a message was heard", async (context) => {
      const key = unique();
      const proxy = await through(context);
      proxy.swallow(/smessage/);
      await polls(context, key, proxy, async () => {
        proxy.swallow(undefined);
        await queued(key, 1);
      });
    });

    test("gets the lock by polling where a proxy lets no subscription through, and says so", async (context) => {
      const proxy = await through(context);
      proxy.holdBack(/ssubscribe/i);
      await pollsOnly(context, proxyClient(context, proxy));
    });

    test("gets the lock by polling where messages are lost, and says so", async (context) => {
      const proxy = await through(context);
      proxy.swallow(/smessage/);
      await pollsOnly(context, proxyClient(context, proxy));
    });

    test("gets the lock by polling where it may not use channels, and says so", async (context) => {
      await probe.acl("SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels");
      await pollsOnly(context, server.client({ username: "deaf", password: "secret" }));
    });

    test("gets the lock by polling where its subscription is at another server, and says so", async (context) => {
      const other = await startRedis();
      context.onTestFinished(() => other.stop());
      const client = server.client();
      client.duplicate = () => other.client();
      await pollsOnly(context, client);
    });
  });

  function open(
    context: TestContext,
    options: LocksOptions = {},
    driverOptions: RedisOptions = {},
    client: RedisClient = server.client(),
  ): Locks {
    const locks = createLocks(redis(client, driverOptions), options);
    context.onTestFinished(() => locks.close());
    return locks;
  }

  async function queued(key: string, count: number): Promise<void> {
    await vi.waitFor(
      async () => {
        expect(await probe.zcard(queueOf(key))).toBe(count);
      },
      { timeout: 10_000, interval: 10 },
    );
  }

  function keysOf(key: string): Promise<string[]> {
    return probe.keys(`*${key}*`);
  }

  /** The id of the subscribed one of the connections of that name. */
  async function subscriberOf(name: string): Promise<string> {
    const list = String(await probe.client("LIST"));
    const ids = Array.from(list.matchAll(/^id=(\d+) .* name=(\S*) .* ssub=1 /gm));
    return ids.find(([, , given]) => given === name)?.[1] as string;
  }

  async function through(context: TestContext): Promise<Proxy> {
    const proxy = await startProxy(server.port);
    context.onTestFinished(() => proxy.stop());
    return proxy;
  }

  function proxyClient(context: TestContext, proxy: Proxy): Redis {
    const client = new Redis({ host: "127.0.0.1", port: proxy.port });
    client.on("error", () => undefined);
    context.onTestFinished(() => {
      client.disconnect();
    });
    return client;
  }

  /** A waiter asks again and again, and has no place in the queue until it can hear. */
  async function polls(
    context: TestContext,
    key: string,
    proxy: Proxy,
    heal: () => Promise<void>,
  ): Promise<void> {
    const holder = await open(context).acquire(key);
    const deaf = open(context, {}, {}, proxyClient(context, proxy));
    const waiter = later(deaf.acquire(key, { waitMs: 20_000 }));
    const asked = await scriptCalls();
    await vi.waitUntil(async () => (await scriptCalls()) >= asked + 6, { timeout: 10_000, interval: 10 });
    expect(await probe.zcard(queueOf(key))).toBe(0);
    await heal();
    await holder.release();
    await (await waiter).release();
  }

  /** A waiter that never hears anything is served all the same, without ever having had a place. */
  async function pollsOnly(context: TestContext, client: RedisClient): Promise<void> {
    const key = unique();
    const events: unknown[] = [];
    const listener = (message: unknown): void => {
      events.push((message as { event: unknown }).event);
    };
    subscribe("holdfast:node", listener);
    context.onTestFinished(() => {
      unsubscribe("holdfast:node", listener);
    });
    const holder = await open(context).acquire(key);
    const deaf = open(context, {}, { commandTimeoutMs: 300 }, client);
    const waiter = later(deaf.acquire(key, { waitMs: 30_000 }));
    await vi.waitFor(
      () => {
        expect(events).toContain("notifications-unavailable");
      },
      { timeout: 10_000 },
    );
    expect(await probe.zcard(queueOf(key))).toBe(0);
    await holder.release();
    const released = performance.now();
    await (await waiter).release();
    expect(performance.now() - released).toBeLessThan(soonMs + 1_000);
  }

  async function scriptCalls(): Promise<number> {
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await probe.info("commandstats"))?.[1] ?? 0);
  }
});

function unique(): string {
  return `waiters-${randomUUID()}`;
}

/** A promise that is awaited later, or never if the test fails before. */
function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function queueOf(key: string): string {
  return `holdfast:queue:{lock:${key}}`;
}

/** Changes its mind after so many turns of the event loop; what it got before is given back. */
async function acquireAndAbort(locks: Locks, key: string, turns: number): Promise<void> {
  const controller = new AbortController();
  const acquiring = later(
    locks.acquire(key, { signal: controller.signal, waitMs: 60_000 }).then((lease) => lease.release()),
  );
  for (let turn = 0; turn < turns; turn++) {
    await new Promise(setImmediate);
  }
  controller.abort(new Error("changed my mind"));
  await acquiring;
}
