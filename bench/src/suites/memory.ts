import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { WorkerGroup } from "../run/workers.ts";
import type { Load } from "../run/protocol.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { usedBytes } from "../measure/server-memory.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";

/** Longer than anybody measures: nothing is renewed and nothing expires. */
const ttlMs = 3_600_000;

const maxSamples = 20;
const toleranceBytes = 10_000;

const metrics: readonly Metric[] = [
  { id: "here", label: "bytes here", digits: 0, best: "least" },
  // Without a ratio: where others keep nothing it is one of noise.
  { id: "server", label: "bytes in Redis", digits: 0 },
];

export interface MemorySize {
  /** How many there are of what is weighed. */
  readonly count: number;
  /** How many keys are used once. More, as each may leave little. */
  readonly usedOnce: number;
  /** All is left alone before it is weighed, until nothing has changed for so long. */
  readonly settleMs: number;
}

interface Case {
  readonly label: string;
  readonly count: number;
  /** What somebody holds meanwhile, before anything is weighed. */
  readonly leaseCount: readonly string[];
  readonly load: Load;
}

/** How much memory each of many takes, in the process and on the server. */
export function memory(
  contestants: readonly ContestantName[],
  { count, usedOnce, settleMs }: MemorySize,
  rounds: number,
): Suite {
  const keys = keysOf(count);
  const one = keys.slice(0, 1);
  const cases: readonly Case[] = [
    { label: "a held lease", count, leaseCount: [], load: { kind: "keep", keys, ttlMs } },
    {
      label: "a waiter, all on one key",
      count,
      leaseCount: one,
      load: { kind: "queue", keys: one, waiters: count, ttlMs: 10_000 },
    },
    {
      label: "a waiter, each on a key of its own",
      count,
      leaseCount: keys,
      load: { kind: "queue", keys, waiters: count, ttlMs: 10_000 },
    },
    {
      label: "a key that was used once",
      count: usedOnce,
      leaseCount: [],
      load: { kind: "use", keys: keysOf(usedOnce), ttlMs: 10_000 },
    },
  ];

  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    for (const one of cases) yield await measureCase(contestant, site, one);
  }

  async function measureCase(
    contestant: ContestantName,
    site: Site,
    { label, count: weighedCount, leaseCount, load }: Case,
  ): Promise<Figures> {
    const [{ admin }] = site.servers;
    await admin.flushall();
    await using holder = await WorkerGroup.open(contestant, site, 1);
    if (leaseCount.length > 0) await holder.start({ kind: "keep", keys: leaseCount, ttlMs });
    await using workerGroup = await WorkerGroup.open(contestant, site, 1);
    // What a first use loads, compiles and keeps is not of the many.
    await workerGroup.start({ kind: "use", keys: ["warm:1", "warm:2", "warm:3"], ttlMs: 10_000 });
    const weigh = async (): Promise<{ clientBytes: number; server: number }> => {
      const server = await settledBytes(admin, settleMs);
      return { clientBytes: (await workerGroup.memory()).used, server };
    };
    const baseline = await weigh();
    await workerGroup.start(load);
    const after = await weigh();
    const values = {
      clientBytes: (after.clientBytes - baseline.clientBytes) / weighedCount,
      server: (after.server - baseline.server) / weighedCount,
    };
    return { case: label, settings: workerGroup.settings, values, failures: 0, firstFailure: null };
  }

  return {
    name: "memory",
    title: "Memory",
    method: `${count.toLocaleString("en-US")} of each in one process, ${usedOnce.toLocaleString("en-US")} keys that were used once; what they add, divided by their number. Here: the heap, after its garbage was collected. In Redis: used_memory without the buffers of connections.`,
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

/** What the server keeps, once it keeps the same for a while: not all who wait stand in a queue at once. */
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
