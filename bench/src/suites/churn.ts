import { setTimeout as sleep } from "node:timers/promises";
import { WorkerGroup } from "../run/workers.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { usedBytes } from "../measure/server-memory.ts";
import { grantsIn, median } from "../measure/statistics.ts";
import type { Figures, Metric, Series, Site, Suite } from "./suite.ts";

const tasks = 64;
const maxPauseMs = 10_000;
const sampleCount = 40;

const metrics: readonly Metric[] = [
  { id: "cycles", label: "acquisitions", digits: 0 },
  { id: "here", label: "MB here, at first", digits: 2 },
  { id: "hereLast", label: "at last", digits: 2 },
  { id: "hereGrowth", label: "growth %", digits: 2 },
  { id: "server", label: "MB in Redis, at first", digits: 2 },
  { id: "serverLast", label: "at last", digits: 2 },
  { id: "serverGrowth", label: "growth %", digits: 2 },
  { id: "keys", label: "keys in Redis at last", digits: 0 },
];

export interface ChurnSize {
  readonly keys: number;
  readonly minutes: number;
}

interface MemorySample {
  readonly atSeconds: number;
  readonly cycles: number;
  readonly here: number;
  readonly resident: number;
  readonly server: number;
}

/** Whether memory grows while many keys are used in turn, again and again. */
export function churn(
  contestants: readonly ContestantName[],
  { keys, minutes }: ChurnSize,
  rounds: number,
): Suite {
  const label = `${keys.toLocaleString("en-US")} keys, ${minutes} min`;
  const pauseMs = Math.min(maxPauseMs, (minutes * 60_000) / sampleCount);

  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    const [{ admin }] = site.servers;
    await using workerGroup = await WorkerGroup.open(contestant, site, 1);
    await workerGroup.start({
      kind: "cycle",
      tasks,
      keys: { by: "turn", count: keys },
      ttlMs: 10_000,
      holdMs: 0,
    });
    await workerGroup.begin();
    const startedAt = performance.now();
    const samples: MemorySample[] = [];
    let [cycles, failures] = [0, 0];
    let firstFailure: string | null = null;
    while (performance.now() - startedAt < minutes * 60_000) {
      await sleep(pauseMs);
      const measurements = await workerGroup.end();
      // `begin` drops the records of the previous interval, so that they do not count as memory.
      await workerGroup.begin();
      cycles += grantsIn(measurements);
      for (const one of measurements) {
        failures += one.failures;
        firstFailure ??= one.firstFailure;
      }
      const { used, resident } = await workerGroup.memory();
      const atSeconds = (performance.now() - startedAt) / 1_000;
      samples.push({ atSeconds, cycles, here: used, resident, server: await usedBytes(admin) });
    }
    const values = { ...growthOf(samples, keys), cycles, keys: await admin.dbsize() };
    const { settings } = workerGroup;
    yield { case: label, settings, values, series: seriesOf(samples), failures, firstFailure };
  }

  return {
    name: "churn",
    title: "Many different keys come and go",
    method: `${tasks} tasks in one process acquire and release ${keys.toLocaleString("en-US")} keys in turn for ${minutes} minutes. "At first" is the median of the first third of the samples after the first round, "at last" that of the last third.`,
    contestants,
    absent: [],
    reference: null,
    topology: "server",
    rounds,
    cases: [label],
    metrics,
    panels: [
      { form: "curves", label: "heap here, MB", series: "here MB" },
      { form: "curves", label: "process here, MB resident", series: "resident MB" },
      { form: "curves", label: "Redis, MB", series: "server MB" },
    ],
    measure,
  };
}

/** The values are NaN if the first round did not end. */
export function growthOf(samples: readonly MemorySample[], keys: number): Record<string, number> {
  const settled = samples.filter(({ cycles }) => cycles >= keys);
  const third = Math.ceil(settled.length / 3);
  const [first, last] = [settled.slice(0, third), settled.slice(-third)];
  const average = (count: readonly MemorySample[], field: "here" | "server"): number =>
    median(count.map((sample) => sample[field])) / 1e6;
  const growth = (field: "here" | "server"): number =>
    (average(last, field) / average(first, field) - 1) * 100;
  return {
    here: average(first, "here"),
    hereLast: average(last, "here"),
    hereGrowth: growth("here"),
    server: average(first, "server"),
    serverLast: average(last, "server"),
    serverGrowth: growth("server"),
  };
}

/** At most `sampleCount` of the samples, because more cannot be seen in a chart. */
function seriesOf(samples: readonly MemorySample[]): Series {
  const every = Math.ceil(samples.length / sampleCount);
  const kept = samples.filter((_, index) => index % every === 0);
  const megabytes = (field: "here" | "server" | "resident"): number[] =>
    kept.map((sample) => Math.round(sample[field] / 1e4) / 100);
  return {
    seconds: kept.map(({ atSeconds }) => Math.round(atSeconds * 10) / 10),
    "here MB": megabytes("here"),
    "server MB": megabytes("server"),
    "resident MB": megabytes("resident"),
  };
}
