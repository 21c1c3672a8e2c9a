import { createLocks, EngineError, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import {
  rejection,
  startRedis,
  startSentinels,
  waitUntil,
  type RedisServer,
  type Sentinels,
} from "@holdfast/test-kit";
import type { Redis } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { sentinelLibraries, type OpenSentinelClient } from "../../support/sentinel-clients.ts";
import { onRedis } from "../../support/servers.ts";

const notReached = { code: "replicas-not-reached", retryable: true, outcome: "none" };

for (const name of ["ioredis 6", "node-redis 6"]) {
  const openClient = sentinelLibraries[name] as OpenSentinelClient;
  onRedis(`With minReplicas, by ${name}`, () => {
    let lab: Sentinels;
    let primary: RedisServer;
    let probe: Redis;
    let followers: RedisServer[];
    let cleanups: (() => Promise<unknown>)[] = [];

    beforeAll(async () => {
      lab = await startSentinels({ downAfterMs: 600_000 }); // no primary is replaced
      primary = await lab.primary();
      probe = primary.client();
      followers = lab.servers.filter((server) => server !== primary);
    });

    afterEach(async () => {
      for (const follower of followers) {
        follower.thaw();
      }
      for (const cleanup of cleanups.reverse()) {
        await cleanup();
      }
      cleanups = [];
      await probe.flushall();
      await waitUntil(async () => (await probe.wait(2, 100)) === 2, "the replicas follow again");
    });

    afterAll(() => lab.stop());

    async function open(minReplicas = 1): Promise<Locks> {
      const { client, close } = await openClient(lab);
      const locks = createLocks(redis(client, { minReplicas }));
      cleanups.push(close, () => locks.close());
      await locks.withLock("warm up", () => undefined);
      await waitUntil(
        async () => (await locks.admin.nodes())[0]?.notifications === "verified",
        "notifications are verified",
      );
      return locks;
    }

    function freeze(): void {
      for (const follower of followers) {
        follower.freeze();
      }
    }

    test("at least one replica has each grant that a caller gets", async () => {
      const locks = await open();
      const lease = await locks.acquire("key");
      const replicas = followers.map((follower) => follower.client());
      await waitUntil(async () => (await held(replicas)) > 0, "a replica has it");
      expect(await lease.release()).toBe(true);
    });

    test("without an acknowledgement no caller gets the lock, and no residue stays", async () => {
      const locks = await open();
      freeze();
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toBeInstanceOf(EngineError);
      expect(error).toMatchObject({ ...notReached, key: "key" });
      expect(await probe.exists("lock:key")).toBe(0);
      const together = await rejection(locks.all(["a", "b"]).tryAcquire());
      expect(together.error).toMatchObject(notReached);
      const writer = await rejection(locks.readWrite("shared").write.tryAcquire());
      expect(writer.error).toMatchObject(notReached);
      expect(await probe.keys("lock:*")).toEqual([]);
    });

    test("fewer acknowledgements than required count as none", async () => {
      const locks = await open(2);
      followers[0]?.freeze();
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ ...notReached, key: "key" });
      expect(await probe.exists("lock:key")).toBe(0);
      followers[0]?.thaw();
      expect(await (await locks.acquire("key", { waitMs: 60_000 })).release()).toBe(true);
    });

    test("a waiter continues until its wait ends, or until a replica acknowledges", async () => {
      const locks = await open();
      freeze();
      const { error } = await rejection(locks.acquire("key", { waitMs: 500 }));
      expect(error).toMatchObject(notReached);
      const waiting = locks.acquire("key", { waitMs: 60_000 });
      followers[0]?.thaw();
      expect(await (await waiting).release()).toBe(true);
    });

    test("a grant by another's release is not reported before a replica has it", async () => {
      const [mine, others] = [await open(), await open()];
      const lease = await mine.acquire("key");
      const waiting = rejection(others.acquire("key", { waitMs: 2_000 }));
      await waitUntil(
        async () => (await mine.inspect("key")).waiterCount === 1,
        "the other client is queued",
      );
      freeze();
      expect(await lease.release()).toBe(true);
      expect((await waiting).error).toMatchObject(notReached);
      expect(await probe.exists("lock:key")).toBe(0);
    });

    test("an extension counts once a replica has it", async () => {
      const locks = await open();
      const lease = await locks.acquire("key", { ttlMs: 60_000, renew: false });
      const { validUntil } = lease;
      freeze();
      expect((await rejection(lease.extend())).error).toMatchObject({ code: "replicas-not-reached" });
      expect(lease.validUntil).toBe(validUntil);
      followers[0]?.thaw();
      await probe.set("marker", "1");
      await probe.wait(1, 0); // the replica is awake
      await lease.extend();
      expect(lease.validUntil).toBeGreaterThan(validUntil);
      expect(await lease.release()).toBe(true);
    });
  });
}

onRedis("With minReplicas, a server without any replica", () => {
  test("never grants: no replica is never enough", async () => {
    const server = await startRedis();
    const locks = createLocks(redis(server.client(), { commandTimeoutMs: 500, minReplicas: 1 }));
    try {
      for (const request of [() => locks.tryAcquire("key"), () => locks.acquire("key", { waitMs: 300 })]) {
        expect((await rejection(request())).error).toMatchObject({ ...notReached, key: "key" });
      }
      expect(await server.client().keys("lock:*")).toEqual([]);
    } finally {
      await locks.close();
      await server.stop();
    }
  });
});

onRedis("With minReplicas, a caller that aborts during the wait for replicas", () => {
  type Asking = (locks: Locks, signal: AbortSignal) => Promise<unknown>;
  test.each<[string, Asking]>([
    ["a try", (locks, signal) => locks.tryAcquire("key", { signal })],
    ["a waiter", (locks, signal) => locks.acquire("key", { signal })],
    ["a writer", (locks, signal) => locks.readWrite("key").write.acquire({ signal })],
    ["several keys, after that wait", (locks, signal) => locks.all(["a", "b"]).acquire({ signal })],
  ])("gets its error at once, and the grant is released: %s", async (what, request) => {
    const server = await startRedis();
    const locks = createLocks(redis(server.client(), { commandTimeoutMs: 60_000, minReplicas: 1 }));
    try {
      const probe = server.client();
      const waiting = async (): Promise<string | undefined> =>
        /^id=(\d+) .* flags=b .* cmd=wait /m.exec(String(await probe.client("LIST")))?.[1];
      const aborting = new AbortController();
      const rejected = rejection(request(locks, aborting.signal));
      await waitUntil(async () => (await waiting()) !== undefined, "the connection waits for a replica");
      expect((await probe.keys("lock:*")).length).toBeGreaterThan(0);
      const reason = new Error("no longer needed");
      aborting.abort(reason);
      expect((await rejected).error).toBe(reason);
      const id = await waiting();
      expect(id).toBeDefined();
      if (what.startsWith("several")) {
        await probe.client("UNBLOCK", String(id));
      }
      await waitUntil(async () => (await probe.keys("lock:*")).length === 0, "the grant is released");
    } finally {
      await locks.close();
      await server.stop();
    }
  });
});

/**
 * Commands that a new connection sends before its first use would be waited for, and so would all earlier
 * writes.
 */
const mute = { enableReadyCheck: false, disableClientInfo: true };

onRedis("With minReplicas, a wait whose connection was lost", () => {
  test("counts for nothing: the new connection has written nothing to wait for", async () => {
    const primary = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    const replica = await startRedis({ args: ["--replicaof", `127.0.0.1 ${primary.port}`] });
    const client = new Ioredis5(primary.port, "127.0.0.1", mute).on("error", () => undefined);
    const locks = createLocks(redis(client, { commandTimeoutMs: 8_000, minReplicas: 1 }));
    try {
      const probe = primary.client();
      await waitUntil(async () => (await probe.wait(1, 100)) === 1, "the replica follows");
      await locks.withLock("warm up", () => undefined);
      replica.freeze();
      const tried = rejection(locks.tryAcquire("key"));
      let blocked: string | undefined;
      await waitUntil(async () => {
        blocked = /^id=(\d+) .* flags=b .* cmd=wait /m.exec(String(await probe.client("LIST")))?.[1];
        return blocked !== undefined;
      }, "the connection waits for the replica");
      await probe.call("client", "kill", "id", String(blocked));
      expect((await tried).error).toMatchObject({ retryable: true, outcome: "none" });
      expect(await probe.exists("lock:key")).toBe(0);
    } finally {
      await locks.close();
      client.disconnect();
      await replica.stop();
      await primary.stop();
    }
  });
});

async function held(replicas: readonly Redis[]): Promise<number> {
  const counts = await Promise.all(replicas.map((replica) => replica.exists("lock:key")));
  return counts.reduce((sum, count) => sum + count, 0);
}
