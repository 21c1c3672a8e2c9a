import { Redis } from "ioredis";
import Redlock, { ExecutionError, LockError, ResourceLockedError, type Lock } from "holdfast/compat/redlock";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { rejection, startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";

import { onRedis } from "../../support/servers.ts";

const duration = 30_000;

onRedis("the class Redlock", () => {
  let server: RedisServer;
  let opened: Redlock[] = [];
  let keys = 0;

  beforeAll(async () => {
    server = await startRedis();
  });

  afterEach(async () => {
    await Promise.all(opened.map((redlock) => redlock.quit()));
    opened = [];
  });

  afterAll(() => server.stop());

  function open(settings?: ConstructorParameters<typeof Redlock>[1]): Redlock {
    const redlock = new Redlock([new Redis(server.port, "127.0.0.1")], settings);
    opened.push(redlock);
    return redlock;
  }

  function newKey(): string {
    keys += 1;
    return `resource:${keys}`;
  }

  test("acquires, extends and releases a lock on several resources", async () => {
    const [redlock, other] = [open(), open({ retryCount: 0 })];
    const resources = [newKey(), newKey()];
    const lock = await redlock.acquire(resources, 10_000);
    expect(lock.resources).toEqual(resources);
    expect(lock.expiration).toBeGreaterThan(Date.now());
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + 10_000);
    await expect(other.acquire([resources[1] as string], duration)).rejects.toThrow(ExecutionError);
    const extended = await lock.extend(duration);
    expect(lock.expiration).toBe(0);
    expect(extended.expiration).toBeGreaterThan(Date.now() + 10_000);
    expect(await extended.release()).toEqual({ attempts: [] });
    expect(extended.expiration).toBe(0);
    expect(await server.client().exists(...resources)).toBe(0);
    await (await other.acquire(resources, duration)).release();
  });

  test("shares its connection with the other instances on its client, which are collected", async () => {
    const client = new Redis(server.port, "127.0.0.1");
    const instances: WeakRef<Redlock>[] = [];
    const lockOnce = async (): Promise<void> => {
      const redlock = new Redlock([client]);
      instances.push(new WeakRef(redlock));
      await (await redlock.acquire([newKey()], duration)).release();
    };
    const count = async (): Promise<number> => {
      const list = String(await server.client().client("LIST"));
      return list.split("\n").length;
    };
    await lockOnce();
    const [connections, listeners] = [await count(), client.listenerCount("close")];
    for (let made = 0; made < 150; made += 1) {
      await lockOnce();
    }
    expect(await count()).toBeLessThan(connections + 10); // the connections of other tests may just end
    expect(client.listenerCount("close")).toBe(listeners);
    await waitUntil(() => {
      (globalThis.gc as () => void)();
      return instances.every((instance) => instance.deref() === undefined);
    }, "all instances are collected");
    await new Redlock([client]).quit();
  });

  test("works on a client that another instance has closed and its program connected again", async () => {
    const client = new Redis(server.port, "127.0.0.1");
    const [first, second] = [new Redlock([client]), new Redlock([client])];
    opened.push(second);
    await (await first.acquire([newKey()], duration)).release();
    await first.quit();
    await waitUntil(() => client.status === "end", "the client has ended");
    await client.connect();
    await (await second.acquire([newKey()], duration)).release();
  });

  test("uses the name of the resource as the key", async () => {
    const key = newKey();
    const lock = await open().acquire([key], duration);
    expect(await server.client().exists(key)).toBe(1);
    await lock.release();
  });

  test("rejects with an ExecutionError and its statistics, and emits the reason", async () => {
    const [redlock, other] = [open(), open({ retryCount: 2, retryDelay: 50 })];
    const events: unknown[] = [];
    other.on("error", (event) => events.push(event));
    const key = newKey();
    const lock = await redlock.acquire([key], duration);
    const { error } = await rejection(other.acquire([key], duration));
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error).toBeInstanceOf(LockError);
    const { attempts, message } = error as ExecutionError;
    expect(message).toBe("The operation was unable to achieve a quorum during its retry window.");
    const [client] = other.clients;
    expect(await Promise.all(attempts)).toEqual([
      {
        membershipSize: 1,
        quorumSize: 1,
        votesFor: new Set(),
        votesAgainst: new Map([[client, expect.any(ResourceLockedError)]]),
      },
    ]);
    expect(events).toEqual([expect.any(ResourceLockedError)]);
    await lock.release();
  });

  test("waits for as long as the retries would last, and is granted at the release", async () => {
    const [redlock, other] = [open(), open({ retryCount: 1_000, retryDelay: 100 })];
    const key = newKey();
    const lock = await redlock.acquire([key], duration);
    const waiting = other.acquire([key], duration);
    await waitUntil(async () => (await server.client().zcard(`holdfast:queue:{${key}}`)) === 1, "it waits");
    await lock.release();
    await (await waiting).release();
    const endless = await open({ retryCount: -1 }).acquire([key], duration);
    await endless.release();
  });

  test("rejects an extension and a release of a lock that has ended", async () => {
    const redlock = open();
    const key = newKey();
    const lock = await redlock.acquire([key], 200);
    await waitUntil(() => lock.expiration < Date.now(), "the lock has expired");
    await expect(lock.extend(duration)).rejects.toThrow("Cannot extend an already-expired lock.");
    await expect(lock.release()).rejects.toThrow(ExecutionError);
    const released = await redlock.acquire([key], duration);
    await released.release();
    await expect(released.extend(duration)).rejects.toThrow(ExecutionError);
    await expect(open().release(released)).rejects.toThrow("was not acquired by this Redlock");
  });

  test("using extends the lock until the routine ends", async () => {
    const [redlock, other] = [open(), open({ retryCount: 0 })];
    const key = newKey();
    const result = await redlock.using([key], 1_000, { automaticExtensionThreshold: 500 }, async (signal) => {
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      await expect(other.acquire([key], duration)).rejects.toThrow(ExecutionError);
      expect([signal.aborted, signal.error]).toEqual([false, undefined]);
      return 7;
    });
    expect(result).toBe(7);
    await (await other.acquire([key], duration)).release();
  });

  test("using aborts its signal when the lock is lost, and rejects", async () => {
    const key = newKey();
    const using = open().using([key], 1_000, async (signal) => {
      const lost = new Promise((resolve) => signal.addEventListener("abort", resolve));
      await server.client().del(key);
      await lost;
      expect(signal.error).toBeInstanceOf(Error);
    });
    await expect(using).rejects.toThrow(ExecutionError);
  });

  test("using releases after a routine that rejects", async () => {
    const [redlock, key] = [open(), newKey()];
    const failing = redlock.using([key], duration, () => Promise.reject(new Error("the work failed")));
    await expect(failing).rejects.toThrow("the work failed");
    expect(await server.client().exists(key)).toBe(0);
  });

  test("has the calls of version 4", async () => {
    const [redlock, key] = [open(), newKey()];
    const lock = await redlock.lock(key, duration);
    expect(lock.resource).toBe(key);
    await lock.unlock();
    await redlock.unlock(await redlock.lock([key], duration));
    let inside: Lock | undefined;
    {
      await using scope = await redlock.disposer(key, duration);
      inside = scope;
      expect(await server.client().exists(key)).toBe(1);
    }
    expect(inside.expiration).toBe(0);
    expect(await server.client().exists(key)).toBe(0);
  });

  test("refuses bad arguments", async () => {
    expect(() => new Redlock([])).toThrow("Expected at least one Redis client, got none");
    expect(() => open({ retryCount: "3" as unknown as number })).toThrow(
      "Expected `retryCount` to be a number, got 3",
    );
    const redlock = open();
    await expect(redlock.acquire([newKey()], 1.5)).rejects.toThrow(/integer of milliseconds, got 1.5/);
    await expect(redlock.using([newKey()], 550, async () => undefined)).rejects.toThrow(
      /at least 100 ms more than `automaticExtensionThreshold` \(500 ms\), got 550 ms/,
    );
    await expect(redlock.acquire([], duration)).rejects.toMatchObject({ code: "invalid-key" });
  });
});
