import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Crew } from "../run/workers.ts";
import type { Load } from "../run/protocol.ts";
import type { Entrant } from "../run/contestant-list.ts";
import { keptBytes } from "../measure/server-memory.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";

/** Longer than anybody measures: nothing is renewed and nothing expires. */
const ttlMs = 3_600_000;

const mostLooks = 20;
const sameBytes = 10_000;

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
  readonly kept: readonly string[];
  readonly load: Load;
}

/** How much memory each of many takes, in the process and on the server. */
export function memory(
  entrants: readonly Entrant[],
  { count, usedOnce, settleMs }: MemorySize,
  rounds: number,
): Suite {
  const keys = keysOf(count);
  const one = keys.slice(0, 1);
  const cases: readonly Case[] = [
    { label: "a held lease", count, kept: [], load: { kind: "keep", keys, ttlMs } },
    {
      label: "a waiter, all on one key",
      count,
      kept: one,
      load: { kind: "queue", keys: one, waiters: count, ttlMs: 10_000 },
    },
    {
      label: "a waiter, each on a key of its own",
      count,
      kept: keys,
      load: { kind: "queue", keys, waiters: count, ttlMs: 10_000 },
    },
    {
      label: "a key that was used once",
      count: usedOnce,
      kept: [],
      load: { kind: "use", keys: keysOf(usedOnce), ttlMs: 10_000 },
    },
  ];

  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    for (const one of cases) yield await weighed(entrant, site, one);
  }

  async function weighed(
    entrant: Entrant,
    site: Site,
    { label, count: weighedCount, kept, load }: Case,
  ): Promise<Figures> {
    const [{ admin }] = site.servers;
    await admin.flushall();
    await using holder = await Crew.open(entrant, site, 1);
    if (kept.length > 0) await holder.start({ kind: "keep", keys: kept, ttlMs });
    await using crew = await Crew.open(entrant, site, 1);
    // What a first use loads, compiles and keeps is not of the many.
    await crew.start({ kind: "use", keys: ["warm:1", "warm:2", "warm:3"], ttlMs: 10_000 });
    const weigh = async (): Promise<{ here: number; server: number }> => {
      const server = await settledBytes(admin, settleMs);
      return { here: (await crew.memory()).used, server };
    };
    const before = await weigh();
    await crew.start(load);
    const after = await weigh();
    const values = {
      here: (after.here - before.here) / weighedCount,
      server: (after.server - before.server) / weighedCount,
    };
    return { case: label, settings: crew.settings, values, failures: 0, firstFailure: null };
  }

  return {
    name: "memory",
    title: "Memory",
    method: `${count.toLocaleString("en-US")} of each in one process, ${usedOnce.toLocaleString("en-US")} keys that were used once; what they add, divided by their number. Here: the heap, after its garbage was collected. In Redis: used_memory without the buffers of connections.`,
    entrants,
    absent: [],
    reference: "raw",
    ground: "server",
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
  let before = await keptBytes(admin);
  for (let look = 0; look < mostLooks; look += 1) {
    await sleep(settleMs);
    const now = await keptBytes(admin);
    if (Math.abs(now - before) < sameBytes) return now;
    before = now;
  }
  return before;
}
