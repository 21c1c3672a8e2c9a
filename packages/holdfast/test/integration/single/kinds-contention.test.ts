import { once } from "node:events";

import { timeFactor, waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import {
  onCleanup,
  connect,
  direct,
  newKey,
  onSharedRedis,
  open,
  ownProxy,
  ownServer,
  reasonOf,
  shared,
  start,
  warmUp,
} from "../../support/fault-fixture.ts";
import { readTurnRecords, writersOutOfOrder, type TurnStatistics } from "../../support/event-loop-turns.ts";
import { Recording } from "../../support/workers.ts";

const processes = 4;
const tasks = 8;
const rounds = 25;

onSharedRedis("several processes that share locks on one server", () => {
  test("read-write, nine of ten read: a writer is alone, and every task gets all its turns", async () => {
    const turns = await contend("read-write");
    expect(turns.heaviest).toBe(1000); // a writer counts as a thousand readers
    expectAll(turns);
    expect(writersOutOfOrder(turns)).toEqual([]);
  });

  test("a semaphore of 4 under 32 tasks: never more inside, and every task gets all its turns", async () => {
    const turns = await contend("semaphore");
    expect(turns.heaviest).toBeLessThanOrEqual(4);
    expect(turns.heaviest).toBeGreaterThan(1);
    expectAll(turns);
    expect(new Set(turns.startedOrder.map(({ token }) => token)).size).toBe(processes * tasks * rounds);
  });

  async function contend(kind: "read-write" | "semaphore"): Promise<TurnStatistics> {
    using recording = new Recording();
    const key = newKey();
    const order = JSON.stringify({ kind, keys: [key], tasks, rounds, record: recording.path });
    const workers = ["a", "b", "c", "d"].map((name) => start("shares.mjs", shared.port, name, order));
    await Promise.all(workers.map(({ child }) => once(child, "close")));
    expect(workers.map(({ lines }) => lines)).toEqual(workers.map(() => ["done"]));
    return readTurnRecords(recording.path).get(key) as TurnStatistics;
  }

  function expectAll({ counts }: TurnStatistics): void {
    expect(counts.size).toBe(processes * tasks);
    expect(new Set(counts.values())).toEqual(new Set([rounds]));
  }

  test("of a killed reader, the lease expires, and no other does", async () => {
    const key = newKey();
    const { child, lines } = start(
      "shares.mjs",
      shared.port,
      "a",
      JSON.stringify({ hold: "read", key, ttlMs: 1_500 }),
    );
    const locks = open(connect(shared.port));
    const stays = await locks.readWrite(key).read.acquire();
    await waitUntil(() => lines.includes("held"), "the other process reads");
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    const killedAt = performance.now();
    const writing = locks.readWrite(key).write.acquire({ waitMs: 20_000 });
    await waitUntil(async () => (await locks.inspect(key)).holders.length === 1, "the lease has expired");
    expect(performance.now() - killedAt).toBeLessThan(4_000 * timeFactor);
    stays.throwIfLost();
    expect((await locks.inspect(key)).waiterCount).toBe(1);
    await stays.release();
    await (await writing).release();
  });
});

onSharedRedis("shared locks, when the server or the connection fails", () => {
  test("a server that is frozen past the TTL: permits are lost in time, and granted anew after it", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port));
    await warmUp(locks);
    const own = locks.semaphore(newKey(), { limit: 2 });
    const leases = [await own.acquire({ ttlMs: 1_000 }), await own.acquire({ ttlMs: 1_000 })];
    const signals = leases.map(({ signal }) => signal);
    const waiting = own.acquire({ waitMs: 20_000, permits: 2 });
    server.freeze();
    onCleanup(() => {
      server.thaw();
    });
    await waitUntil(() => signals.every(({ aborted }) => aborted), "both permits are lost");
    expect(leases.map((lease) => lease.remainingMs())).toEqual([0, 0]);
    expect(signals.map(reasonOf)).toEqual(["engine-unreachable", "engine-unreachable"]);
    server.thaw();
    const next = await waiting;
    expect(next.remainingMs()).toBeGreaterThan(0);
    expect(await own.tryAcquire()).toBeNull();
    expect(await next.release()).toBe(true);
  });

  test("a server that restarts without its data: holders lose their leases, and waiters get larger numbers", async () => {
    const server = await ownServer();
    const locks = open(connect(server.port, { retryStrategy: () => 50 }));
    await warmUp(locks);
    const own = locks.semaphore(newKey(), { limit: 1 });
    const lease = await own.acquire({ ttlMs: 2_000 });
    const { signal } = lease;
    const waiting = own.acquire({ ttlMs: 2_000, waitMs: 30_000 });
    await waitUntil(async () => (await locks.inspect(lease.key)).waiterCount === 1, "the waiter is queued");
    await server.stop();
    await ownServer({ port: server.port });
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await waitUntil(() => signal.aborted, "the holder has lost its lease");
    expect(await next.release()).toBe(true);
  });

  test("the lost reply of an acquire costs no permit", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }));
    await warmUp(locks);
    const key = newKey();
    const own = locks.semaphore(key, { limit: 2 });
    const lost = proxy.loseNextReply(/\bacquire\b/);
    const first = await own.acquire({ waitMs: 10_000 });
    await lost; // executed, and resent by the client library or by the driver
    expect((await locks.inspect(key)).holders).toHaveLength(1);
    const second = await own.tryAcquire();
    expect(second).not.toBeNull();
    expect(await own.tryAcquire()).toBeNull();
    expect([await first.release(), await second?.release()]).toEqual([true, true]);
  });

  test("the lost reply of a release counts as released, and frees one permit only", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }));
    await warmUp(locks);
    const key = newKey();
    const own = locks.semaphore(key, { limit: 2 });
    const [one, other] = [await own.acquire(), await own.acquire()];
    const lost = proxy.loseNextReply(/\brelease\b/);
    expect(await one.release()).toBe(true);
    await lost;
    other.throwIfLost();
    expect((await locks.inspect(key)).holders).toHaveLength(1);
    const next = await own.tryAcquire();
    expect(await own.tryAcquire()).toBeNull();
    expect([await other.release(), await next?.release()]).toEqual([true, true]);
  });

  test("the lost reply of a downgrade, resent with readers inside, admits no writer beside them", async () => {
    const proxy = await ownProxy(shared);
    const here = open(connect(proxy.port, { retryStrategy: () => 20 }));
    const there = open(connect(shared.port));
    await Promise.all([warmUp(here), warmUp(there)]);
    const key = newKey();
    const writer = await here.readWrite(key).write.acquire();
    const reading = there.readWrite(key).read.acquire();
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "a reader is queued");
    const lost = proxy.loseNextReply(/\bdowngrade\b/);
    const [reader] = await Promise.all([writer.downgrade(), lost]);
    const other = await reading;
    const writing = there.readWrite(key).write.acquire({ waitMs: 20_000 });
    await waitUntil(async () => (await there.inspect(key)).waiterCount === 1, "a writer is queued");
    await other.release();
    const { holders, waiterCount } = await there.inspect(key);
    expect([holders.map(({ mode }) => mode), waiterCount]).toEqual([["read"], 1]);
    reader.throwIfLost();
    await reader.release();
    await (await writing).release();
  });

  test("a connection that is lost with a batch under way: resent operations are executed once", async () => {
    const proxy = await ownProxy(shared);
    const locks = open(connect(proxy.port, { retryStrategy: () => 20 }));
    await warmUp(locks);
    const key = newKey();
    const own = locks.semaphore(key, { limit: 8 });
    const lost = proxy.loseNextReply(/\bacquire\b/);
    const leases = await Promise.all(Array.from({ length: 8 }, () => own.acquire({ waitMs: 10_000 })));
    await lost;
    expect(new Set(leases.map(({ fencingToken }) => fencingToken)).size).toBe(8);
    expect(await direct.zcard(`lock:${key}`)).toBe(8);
    expect(await own.tryAcquire()).toBeNull();
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => true));
  });
});
