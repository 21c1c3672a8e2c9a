import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { WorkerGroup } from "../run/workers.ts";
import type { Load } from "../run/protocol.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { usedBytes } from "../measure/server-memory.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";

/** Longer than any measurement, so that no lease is renewed or expires. */
const ttlMs = 3_600_000;

const maxSamples = 20;
const toleranceBytes = 10_000;

const metrics: readonly Metric[] = [
  { id: "here", label: "bytes here", digits: 0, best: "least" },
  // No ratio, because it would consist of noise if a peer keeps nothing on the server.
  { id: "server", label: "bytes in Redis", digits: 0 },
];

export interface MemorySize {
  /** The number of leases, and of waiters. */
  readonly count: number;
  /** The number of keys that are used once. It is larger, because each key may leave only a few bytes. */
  readonly usedOnce: number;
  /** The server's memory is measured when it has not changed for this time. */
  readonly settleMs: number;
}

interface Case {
  readonly label: string;
  readonly count: number;
  /** The keys that another process holds from before the first measurement. */
  readonly heldKeys: readonly string[];
  readonly load: Load;
}

/** The memory of a lease, of a waiter, and of a used key, in the process and on the server. */
export function memory(
  contestants: readonly ContestantName[],
  { count, usedOnce, settleMs }: MemorySize,
  rounds: number,
): Suite {
  const keys = keysOf(count);
  const one = keys.slice(0, 1);
  const cases: readonly Case[] = [
    { label: "a held lease", count, heldKeys: [], load: { kind: "keep", keys, ttlMs } },
    {
      label: "a waiter, all on one key",
      count,
      heldKeys: one,
      load: { kind: "queue", keys: one, waiters: count, ttlMs: 10_000 },
    },
    {
      label: "a waiter, each on a key of its own",
      count,
      heldKeys: keys,
      load: { kind: "queue", keys, waiters: count, ttlMs: 10_000 },
    },
    {
      label: "a key that was used once",
      count: usedOnce,
      heldKeys: [],
      load: { kind: "use", keys: keysOf(usedOnce), ttlMs: 10_000 },
    },
  ];

  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    for (const one of cases) yield await measureCase(contestant, site, one);
  }

  async function measureCase(
    contestant: ContestantName,
    site: Site,
    { label, count: weighedCount, heldKeys, load }: Case,
  ): Promise<Figures> {
    const [{ admin }] = site.servers;
    await admin.flushall();
    await using holder = await WorkerGroup.open(contestant, site, 1);
    if (heldKeys.length > 0) await holder.start({ kind: "keep", keys: heldKeys, ttlMs });
    await using workerGroup = await WorkerGroup.open(contestant, site, 1);
    // A first use loads and compiles code, which is no memory of the measured leases.
    await workerGroup.start({ kind: "use", keys: ["warm:1", "warm:2", "warm:3"], ttlMs: 10_000 });
    const weigh = async (): Promise<{ here: number; server: number }> => {
      const server = await settledBytes(admin, settleMs);
      return { here: (await workerGroup.memory()).used, server };
    };
    const baseline = await weigh();
    await workerGroup.start(load);
    const after = await weigh();
    const values = {
      here: (after.here - baseline.here) / weighedCount,
      server: (after.server - baseline.server) / weighedCount,
    };
    return { case: label, settings: workerGroup.settings, values, failures: 0, firstFailure: null };
  }

  return {
    name: "memory",
    title: "Memory",
    method: `${count.toLocaleString("en-US")} of each in one process, ${usedOnce.toLocaleString("en-US")} keys that were used once. Each figure is the added memory divided by their number. Here: the heap after garbage collection. In Redis: used_memory without the buffers of connections.`,
    contestants,
    absent: [],
    reference: "raw",
    topology: "server",
    rounds,
    cases: cases.map(({ label }) => label),
    metrics,
    panels: metrics.map(({ id }) => ({ form: "bars", metric: id })),
    measure,
  };
}

function keysOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `weighed:${index}`);
}

/** The server's memory when it has settled, because waiters enter the queue one after another. */
async function settledBytes(admin: Redis, settleMs: number): Promise<number> {
  let previous = await usedBytes(admin);
  for (let attempt = 0; attempt < maxSamples; attempt += 1) {
    await sleep(settleMs);
    const now = await usedBytes(admin);
    if (Math.abs(now - previous) < toleranceBytes) return now;
    previous = now;
  }
  return previous;
}
