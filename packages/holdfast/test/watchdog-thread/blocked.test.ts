import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { createLocks, LeaseLostError, type Lease, type Locks } from "holdfast";
import { redis, type RedisClient } from "holdfast/redis";
import { watchdogThread, type WatchdogThreadOptions } from "holdfast/watchdog-thread";
import { afterEach, expect, test } from "vitest";
import { endProcess, waitUntil } from "@holdfast/test-kit";

import {
  connect,
  direct,
  newKey,
  onSharedRedis,
  ownProxy,
  shared,
  warmUp,
} from "../support/fault-fixture.ts";

const ttlMs = 1_000;
const opened: Locks[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

function open(options?: WatchdogThreadOptions, client: RedisClient = direct): Locks {
  const locks = createLocks(redis(client), {
    watchdog: watchdogThread(`redis://127.0.0.1:${shared.port}`, options),
  });
  opened.push(locks);
  return locks;
}

/** Another process that waits for the key. */
async function waiter(
  key: string,
  ...more: string[]
): Promise<AsyncDisposable & { grantedAt: Promise<number> }> {
  const program = fileURLToPath(new URL("../support/waiting.mjs", import.meta.url));
  const child = spawn(process.execPath, [program, String(shared.port), key, ...more], {
    env: { ...process.env, NODE_OPTIONS: "" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe("waiting");
  const grantedAt = lines.next().then(({ value }) => Number(value));
  return { grantedAt, [Symbol.asyncDispose]: () => endProcess(child) };
}

/** Blocks the event loop. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function wallOf(time: number): number {
  return performance.timeOrigin + time;
}

/** The loss that a synchronous check finds. */
function lossOf(lease: Lease): LeaseLostError | undefined {
  try {
    lease.throwIfLost();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(LeaseLostError);
    return error as LeaseLostError;
  }
}

async function connectionsOfThread(): Promise<string[]> {
  const list = (await direct.client("LIST")) as string;
  const own = String(await direct.client("ID"));
  return [...list.matchAll(/^id=(\d+) .* cmd=(?:evalsha|eval|client\|\S+|info|auth|hello|select|NULL)/gm)]
    .map(([, id]) => String(id))
    .filter((id) => id !== own);
}

onSharedRedis("a watchdog thread", () => {
  test("keeps a lease while the event loop is blocked for several TTLs, and no other process gets in", async () => {
    const key = newKey();
    const lease = await open().acquire(key, { ttlMs });
    await using other = await waiter(key);
    block(3 * ttlMs);
    expect(lossOf(lease)).toBeUndefined();
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(lease.validUntil).toBeGreaterThan(performance.now());
    expect(lease.signal.aborted).toBe(false);
    const releasedAt = Date.now();
    expect(await lease.release()).toBe(true);
    expect(await other.grantedAt).toBeGreaterThanOrEqual(releasedAt);
    expect(lease.signal.aborted).toBe(false);
  });

  test("keeps a lease of which a poll's late reply is read after the block", async () => {
    const key = newKey();
    const proxy = await ownProxy(shared);
    const here = open(undefined, connect(proxy.port));
    const there = createLocks(redis(connect(shared.port)));
    opened.push(there);
    await warmUp(here);
    await waitUntil(async () => (await connectionsOfThread()).length > 0, "the thread has connected");
    const held = await there.acquire(key, { ttlMs });
    const waiting = here.acquire(key, { ttlMs });
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "the waiter is queued");
    proxy.pause("answers");
    await proxy.serverSent(/\*2\r\n/); // the reply to a poll
    await held.release();
    const lease = await waiting; // by notification
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    proxy.resume("answers");
    // Afterwards Node runs the timers before it reads the reply. The thread has just renewed, so this thread renews nothing before.
    block(2.2 * ttlMs);
    await here.inspect(key); // commands after the late reply are executed
    expect(lossOf(lease)).toBeUndefined();
    expect(await there.tryAcquire(key)).toBeNull();
    expect(await lease.release()).toBe(true);
  });

  test("stops after maxBlockedMs, and the first check after the block finds the loss", async () => {
    const key = newKey();
    const lease = await open({ maxBlockedMs: 500 }).acquire(key, { ttlMs });
    await using other = await waiter(key);
    block(500 + 2 * ttlMs);
    const unblockedAt = Date.now();
    expect(lossOf(lease)?.reason).toBe("expired");
    expect(lease.remainingMs()).toBe(0);
    expect(lease.signal.aborted).toBe(true);
    const grantedAt = await other.grantedAt;
    expect(grantedAt).toBeLessThan(unblockedAt);
    expect(grantedAt).toBeGreaterThanOrEqual(Math.floor(wallOf(lease.validUntil)));
    expect(await lease.release()).toBe(false);
  });

  test("finds a break during the block, and the first check reports it", async () => {
    const key = newKey();
    const lease = await open().acquire(key, { ttlMs });
    await using other = await waiter(key, "break");
    block(3 * ttlMs);
    expect(lossOf(lease)?.reason).toMatch(/broken|stolen/);
    await other.grantedAt;
  });

  test("renews many leases, also after a failed connection", async () => {
    const locks = open();
    const keys = Array.from({ length: 200 }, () => newKey());
    await waitUntil(async () => (await connectionsOfThread()).length > 0, "the thread has connected");
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { ttlMs })));
    block(ttlMs); // the thread has renewed
    for (const id of await connectionsOfThread()) {
      await direct.client("KILL", "ID", id);
    }
    block(2 * ttlMs);
    expect(leases.map(lossOf).filter((loss) => loss !== undefined)).toEqual([]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => true));
  });

  test("never renews a released lease, and leases may follow each other in its memory", async () => {
    const locks = open();
    const key = newKey();
    const first = await locks.acquire(key, { ttlMs: 4_000 });
    block(2_500); // the thread has started and connected
    expect(first.remainingMs()).toBeGreaterThan(2_000);
    await first.release();
    for (let round = 0; round < 2; round += 1) {
      const lease = await locks.acquire(key, { ttlMs: 1_000 });
      block(1_500);
      expect(lossOf(lease)).toBeUndefined();
      expect(await lease.release()).toBe(true);
      expect(await direct.exists(`lock:${key}`)).toBe(0);
    }
    const short = await locks.acquire(key, { ttlMs: 300, renew: false });
    block(700);
    expect(lossOf(short)?.reason).toBe("expired");
    const ending = await locks.acquire(key, { ttlMs: 300, maxHoldMs: 400 });
    block(1_500);
    expect(lossOf(ending)).toBeDefined();
    await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "no thread renews the key");
  });

  test("does not outlive its process", async () => {
    const key = newKey();
    const longTtlMs = 3 * ttlMs; // the thread starts while the event loop is already blocked
    const program = fileURLToPath(new URL("../support/blocked-holder.mjs", import.meta.url));
    const child = spawn(process.execPath, [program, String(shared.port), key, String(longTtlMs)], {
      env: { ...process.env, NODE_OPTIONS: "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await once(createInterface({ input: child.stdout }), "line");
      const startedAt = performance.now();
      while (performance.now() - startedAt < 1.5 * longTtlMs) {
        expect(await direct.exists(`lock:${key}`)).toBe(1);
        await sleep(50);
      }
      child.kill("SIGKILL");
      const killedAt = performance.now();
      await waitUntil(async () => (await direct.exists(`lock:${key}`)) === 0, "the lock is free");
      expect(performance.now() - killedAt).toBeLessThan(longTtlMs + 5_000);
    } finally {
      await endProcess(child);
    }
  });

  test("has started before the first lease, so that the event loop may be blocked at once", async () => {
    const connectionName = `thread-${process.pid}`;
    const lease = await open({ connection: { connectionName } }).acquire(newKey(), { ttlMs });
    expect(await direct.client("LIST")).toContain(`name=${connectionName}`);
    expect(await lease.release()).toBe(true);
  });

  test("with another prefix is reported at its first lease, and ends no lease", async () => {
    const warned = once(process, "warning");
    const locks = createLocks(redis(direct, { prefix: "app:" }), {
      watchdog: watchdogThread(`redis://127.0.0.1:${shared.port}`),
    });
    opened.push(locks);
    const lease = await locks.acquire(newKey(), { ttlMs: 3 * ttlMs });
    const [warning] = (await warned) as [Error & { code?: string }];
    expect(warning).toMatchObject({ code: "HOLDFAST_WATCHDOG_THREAD" });
    expect(warning.message).toContain(`does not find the lease of "${lease.key}"`);
    await lease.extend();
    block(1.7 * ttlMs); // the thread has sent a renewal
    expect(lossOf(lease)).toBeUndefined();
    await lease.extend();
    expect(await lease.release()).toBe(true);
  });

  test("that fails to start is reported, and leaves the lease to this thread", async () => {
    const warned = once(process, "warning");
    const locks = createLocks(redis(direct), {
      watchdog: watchdogThread(`redis://127.0.0.1:${shared.port}?noSuchOption=1`),
    });
    opened.push(locks);
    const lease = await locks.acquire(newKey(), { ttlMs: 600 });
    const [warning] = (await warned) as [Error & { code?: string }];
    expect(warning).toMatchObject({ code: "HOLDFAST_WATCHDOG_THREAD" });
    expect(warning.message).toContain("noSuchOption");
    block(900);
    expect(lossOf(lease)?.reason).toBe("expired");
  });
});

test("options of another form are refused", () => {
  expect(() => watchdogThread("memory:")).toThrow(TypeError);
  expect(() => watchdogThread("")).toThrow(RangeError);
  expect(() => watchdogThread("redis://a", { maxBlockedMs: 1 })).toThrow("maxBlockedMs");
  expect(() => watchdogThread("redis://a", { maxBlocked: 1 } as object)).toThrow("`maxBlocked`");
});
