import { createLocks, type Lease, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import {
  rejection,
  ServerClocks,
  startRedis,
  waitUntil,
  type RedisServer,
  type ServerClock,
} from "@holdfast/test-kit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { describeWithClocks, onEachRedis } from "../../support/servers.ts";

const notReached = { code: "replicas-not-reached", retryable: true };
const ttlMs = 60_000;

const options = { ttlMs, renew: false };

type Acquire = (locks: Locks, key: string) => Promise<Lease | null>;
const kinds: Readonly<Record<string, Acquire>> = {
  "a mutex": (locks, key) => locks.tryAcquire(key, options),
  "a mutex with metadata": (locks, key) => locks.tryAcquire(key, { ...options, reason: "import" }),
  "a reader": (locks, key) => locks.readWrite(key).read.tryAcquire(options),
  "a writer": (locks, key) => locks.readWrite(key).write.tryAcquire(options),
  "a permit": (locks, key) => locks.semaphore(key, { limit: 2 }).tryAcquire(options),
};

/**
 * `WAIT` waits for the last write of its connection. Up to Redis 7.0 it waits for the state after the connection's last command. So on later
 * servers an extension that writes nothing gets the acknowledgements of an earlier write.
 */
onEachRedis("With minReplicas, the acknowledgement of an earlier write", (program) => {
  let clocks: ServerClocks | undefined;
  let clock: ServerClock | undefined;
  let primary: RedisServer;
  let replica: RedisServer;
  let probe: Redis;
  let opened: Locks[];
  let locks: Locks;
  let others: Locks;
  let key = "";
  let keys = 0;

  beforeAll(async () => {
    clocks = process.platform === "linux" ? await ServerClocks.make(1).catch(() => undefined) : undefined;
    clock = clocks?.clocks[0];
    const args = ["--repl-diskless-sync-delay", "0"];
    primary = await startRedis({ program, args, ...(clock && { env: clock.env }) });
    replica = await startRedis({ program, args: ["--replicaof", `127.0.0.1 ${primary.port}`] });
    probe = primary.client();
    opened = [locks, others] = [open(), open()];
    await Promise.all(opened.map((each) => each.withLock("warm up", { waitMs: 30_000 }, () => undefined)));
  });

  afterAll(async () => {
    await Promise.all(opened.map((each) => each.close()));
    await replica.stop();
    await primary.stop();
    await clocks?.[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    keys += 1;
    key = `key ${keys}`;
    clock?.set({});
    await thaw();
  });

  function open(): Locks {
    return createLocks(redis(primary.client(), { minReplicas: 1, commandTimeoutMs: 10_000 }));
  }

  /** Resolves when the replica has acknowledged everything. */
  async function thaw(): Promise<void> {
    replica.thaw();
    await probe.set("marker", "1");
    await waitUntil(async () => (await probe.wait(1, 100)) === 1, "the replica follows");
  }

  async function heldLease(acquire: Acquire): Promise<Lease> {
    const lease = await acquire(locks, key);
    expect(lease).not.toBeNull();
    await thaw();
    return lease as Lease;
  }

  describeWithClocks("does not count for a grant that is extended in the millisecond of its grant:", () => {
    test.each(Object.entries(kinds))("%s", async (_kind, acquire) => {
      replica.freeze();
      clock?.set({ rate: 0 });
      expect(await refusal(acquire(locks, key))).toMatchObject({ ...notReached, outcome: "none" });
      expect(await probe.exists(`lock:${key}`)).toBe(0);
    });
  });

  describe("does not count for an extension that leaves the TTL as it is:", () => {
    test.each(Object.entries(kinds))("%s", async (_kind, acquire) => {
      const lease = await heldLease(acquire);
      replica.freeze();
      expect(await refusal(lease.extend(ttlMs / 2))).toMatchObject(notReached);
      await thaw();
      await lease.extend(ttlMs / 2);
      expect(await lease.release()).toBe(true);
    });
  });

  describe("does not count for an adopted lease:", () => {
    test.each(Object.entries(kinds))("%s", async (_kind, acquire) => {
      const lease = await heldLease(acquire);
      replica.freeze();
      expect(await refusal(lease.extend(2 * ttlMs))).toMatchObject(notReached);
      const transferred = lease.transfer();
      expect(await refusal(others.adopt(transferred))).toMatchObject({ ...notReached, key });
      await thaw();
      const adopted = await others.adopt(transferred, { renew: false });
      expect(adopted.remainingMs()).toBeGreaterThan(1.9 * ttlMs);
      expect(await replica.client().pttl(`lock:${key}`)).toBeGreaterThan(adopted.remainingMs());
      expect(await adopted.release()).toBe(true);
    });
  });

  /** The error of a call. Each `WAIT` ends at once, as after its timeout. */
  async function refusal(call: Promise<unknown>): Promise<unknown> {
    let isSettled = false;
    const rejected = rejection(call).finally(() => {
      isSettled = true;
    });
    await waitUntil(async () => {
      const waiting = /^id=(\d+) .* flags=b .* cmd=wait /m.exec(String(await probe.client("LIST")))?.[1];
      if (waiting !== undefined) {
        await probe.client("UNBLOCK", waiting);
      }
      return isSettled;
    }, "the call is refused");
    return (await rejected).error;
  }
});
