import { tracingChannel } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locks } from "holdfast";
import type { Redis } from "ioredis";
import { inBatches } from "../loads/batches.ts";
import { withProxies } from "../run/proxied-site.ts";
import { usedBytes } from "../measure/server-memory.ts";
import { readStats } from "../measure/server-stats.ts";
import { sum } from "../measure/statistics.ts";
import { portsOf, type Site } from "../suites/suite.ts";
import * as formulae from "./formulae.ts";
import { TestLocks } from "./test-locks.ts";

export interface CapacitySize {
  /** The number of leases, waiters and keys whose memory is measured. */
  readonly count: number;
  readonly measureMs: number;
}

interface Checked {
  readonly formula: number;
  readonly measured: number;
}

/** Compares a formula of docs/capacity.md with a measurement. */
export interface Check {
  readonly label: string;
  run(site: Site, size: CapacitySize): Promise<Checked>;
}

const longMs = 3_600_000;
const oneWayDelayMs = 5;
const clients = 3;
/** With this number of processes, the key always has a waiter. */
const waitersPerKey = 4;

export const checks: readonly Check[] = [
  { label: `connections of ${clients} processes`, run: connections },
  { label: "bytes in Redis: leases", run: leases },
  { label: "bytes in Redis: waiters in one queue", run: waiters },
  { label: "bytes in Redis: waiters in a queue each", run: queues },
  { label: "bytes in Redis: keys that were used once", run: usedOnceKeys },
  { label: `pairs/s of a task, ${oneWayDelayMs} ms each way`, run: pairs },
  { label: `turns/s on one key, ${waitersPerKey} processes, ${oneWayDelayMs} ms each way`, run: turns },
  { label: "renewals/s", run: renewals },
  { label: `cores of Redis, ${clients} clients, by the cost that one had`, run: cores },
];

async function connections(site: Site): Promise<Checked> {
  const [{ port, admin }] = site.servers;
  await using testLocks = new TestLocks();
  const countOf = async (): Promise<number> =>
    String(await admin.client("LIST"))
      .trim()
      .split("\n").length;
  const baseline = await countOf();
  for (let process = 0; process < clients; process += 1)
    await testLocks.open(port).tryAcquire(`one:${process}`);
  const measured = (await countOf()) - baseline;
  return { formula: formulae.connections({ processes: clients, nodes: 1 }), measured };
}

async function leases(site: Site, { count }: CapacitySize): Promise<Checked> {
  await using testLocks = new TestLocks();
  const locks = testLocks.open(portsOf(site)[0]);
  const measured = await memoryGrowth(site, locks, () =>
    inBatches(keys(count), (key) => locks.acquire(key, { ttlMs: longMs })),
  );
  return { formula: formulae.redisBytes({ lease: count }), measured };
}

async function waiters(site: Site, { count }: CapacitySize): Promise<Checked> {
  const measured = await queued(site, ["one"], count);
  return { formula: formulae.redisBytes({ waiter: count, queue: 1 }), measured };
}

async function queues(site: Site, { count }: CapacitySize): Promise<Checked> {
  const measured = await queued(site, keys(count), count);
  return { formula: formulae.redisBytes({ waiter: count, queue: count }), measured };
}

/** The bytes that `count` waiters add to the server. The waiters are spread evenly over the held keys. */
async function queued(site: Site, held: readonly string[], count: number): Promise<number> {
  const [{ port, admin }] = site.servers;
  await using testLocks = new TestLocks();
  const locks = testLocks.open(port, { locks: { handover: false } });
  const leases = await inBatches(held, (key) => locks.acquire(key, { ttlMs: longMs }));
  const stopWaiting = new AbortController();
  const waiting: Promise<unknown>[] = [];
  const bytes = await memoryGrowth(site, locks, async () => {
    const options = { waitMs: Infinity, signal: stopWaiting.signal };
    for (let one = 0; one < count; one += 1) {
      waiting.push(locks.acquire(held[one % held.length] ?? "", options).catch(() => {}));
    }
    while ((await queuedIn(admin, held)) < count) await sleep(10);
  });
  stopWaiting.abort();
  await Promise.all([...waiting, ...leases.map((lease) => lease.release())]);
  return bytes;
}

async function usedOnceKeys(site: Site, { count }: CapacitySize): Promise<Checked> {
  await using testLocks = new TestLocks();
  const locks = testLocks.open(portsOf(site)[0]);
  const measured = await memoryGrowth(site, locks, () => inBatches(keys(count), (key) => pair(locks, key)));
  return { formula: formulae.redisBytes({}), measured };
}

async function pairs(site: Site, { measureMs }: CapacitySize): Promise<Checked> {
  await using far = await withProxies(site, oneWayDelayMs);
  await using testLocks = new TestLocks();
  const locks = testLocks.open(portsOf(far.site)[0]);
  await pair(locks, "far");
  const measured = await perSecond(measureMs, [() => pair(locks, "far")]);
  return { formula: formulae.pairsPerSecond({ tasks: 1, roundTripMs: far.roundTripMs }), measured };
}

async function turns(site: Site, { measureMs }: CapacitySize): Promise<Checked> {
  await using far = await withProxies(site, oneWayDelayMs);
  await using testLocks = new TestLocks();
  const [port] = portsOf(far.site);
  const tasks = Array.from({ length: waitersPerKey }, () => testLocks.open(port));
  await Promise.all(tasks.map((locks) => pair(locks, "one")));
  const measured = await perSecond(
    measureMs,
    tasks.map((locks) => () => pair(locks, "one")),
  );
  return { formula: formulae.turnsPerSecond({ holdMs: 0, roundTripMs: far.roundTripMs }), measured };
}

async function renewals(site: Site, { count, measureMs }: CapacitySize): Promise<Checked> {
  const ttlMs = Math.max(600, measureMs);
  await using testLocks = new TestLocks();
  const locks = testLocks.open(portsOf(site)[0]);
  const held = await inBatches(keys(count), (key) => locks.acquire(key, { ttlMs }));
  const { asyncEnd: renewed } = tracingChannel("holdfast:renew");
  let times = 0;
  const countRenewal = (): void => void (times += 1);
  renewed.subscribe(countRenewal);
  // The window begins between two renewals of each lease, and contains three renewals of each.
  await sleep(ttlMs / 6);
  times = 0;
  await sleep(ttlMs);
  renewed.unsubscribe(countRenewal);
  await Promise.all(held.map((lease) => lease.release()));
  const measured = times / (ttlMs / 1_000);
  return { formula: formulae.renewalsPerSecond({ leases: count, ttlMs }), measured };
}

async function cores(site: Site, { measureMs }: CapacitySize): Promise<Checked> {
  const [{ port, admin }] = site.servers;
  await using testLocks = new TestLocks();
  const measureLoad = async (locks: readonly Locks[]): Promise<{ rate: number; cores: number }> => {
    const tasks = locks.flatMap((one, client) =>
      Array.from({ length: 32 }, (_, task) => () => pair(one, `busy:${client}:${task}`)),
    );
    await perSecond(measureMs / 4, tasks);
    const baseline = await readStats(admin);
    const startedAt = performance.now();
    const rate = await perSecond(measureMs, tasks);
    const { cpuMs } = await readStats(admin);
    return { rate, cores: (cpuMs - baseline.cpuMs) / (performance.now() - startedAt) };
  };
  const one = await measureLoad([testLocks.open(port)]);
  const several = await measureLoad(Array.from({ length: clients }, () => testLocks.open(port)));
  const cpuMicros = (one.cores / one.rate) * 1e6;
  return { formula: formulae.serverCores({ perSecond: several.rate, cpuMicros }), measured: several.cores };
}

/** The bytes that `work` adds to the server. The locks are used once before, because their first use also takes memory. */
async function memoryGrowth(site: Site, locks: Locks, work: () => Promise<unknown>): Promise<number> {
  const [{ admin }] = site.servers;
  await pair(locks, "warm");
  const baseline = await usedBytes(admin);
  await work();
  return (await usedBytes(admin)) - baseline;
}

async function pair(locks: Locks, key: string, ttlMs = 10_000): Promise<void> {
  const lease = await locks.acquire(key, { ttlMs, waitMs: Infinity });
  await lease.release();
}

/** The completed calls per second, over all tasks. */
async function perSecond(forMs: number, tasks: readonly (() => Promise<void>)[]): Promise<number> {
  const startedAt = performance.now();
  let times = 0;
  const repeat = async (task: () => Promise<void>): Promise<void> => {
    while (performance.now() - startedAt < forMs) {
      await task();
      times += 1;
    }
  };
  await Promise.all(tasks.map(repeat));
  return (times / (performance.now() - startedAt)) * 1_000;
}

async function queuedIn(admin: Redis, held: readonly string[]): Promise<number> {
  const readLengths = admin.pipeline();
  for (const key of held) readLengths.zcard(`holdfast:queue:{lock:${key}}`);
  return sum(((await readLengths.exec()) ?? []).map(([, length]) => Number(length)));
}

function keys(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `lock-of-work:${index}`);
}
