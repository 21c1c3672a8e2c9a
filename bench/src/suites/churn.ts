import { setTimeout as sleep } from "node:timers/promises";
import { Crew } from "../run/workers.ts";
import type { Entrant } from "../run/contestant-list.ts";
import { keptBytes } from "../measure/server-memory.ts";
import { grantsIn, median } from "../measure/statistics.ts";
import type { Figures, Metric, Point, Site, Suite } from "./suite.ts";

const tasks = 64;
const longestPauseMs = 10_000;
const looks = 40;

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

interface Look {
  readonly atSeconds: number;
  readonly cycles: number;
  readonly here: number;
  readonly resident: number;
  readonly server: number;
}

/** Whether memory grows while many keys come and go, round and round. */
export function churn(entrants: readonly Entrant[], { keys, minutes }: ChurnSize, rounds: number): Suite {
  const label = `${keys.toLocaleString("en-US")} keys, ${minutes} min`;
  const pauseMs = Math.min(longestPauseMs, (minutes * 60_000) / looks);

  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    const [{ admin }] = site.servers;
    await using crew = await Crew.open(entrant, site, 1);
    await crew.start({ kind: "cycle", tasks, keys: { by: "turn", count: keys }, ttlMs: 10_000, holdMs: 0 });
    await crew.begin();
    const startedAt = performance.now();
    const seen: Look[] = [];
    let [cycles, failures] = [0, 0];
    let firstFailure: string | null = null;
    while (performance.now() - startedAt < minutes * 60_000) {
      await sleep(pauseMs);
      const measurements = await crew.end();
      // From here on the notes of the stretch before are garbage, and are not weighed.
      await crew.begin();
      cycles += grantsIn(measurements);
      for (const one of measurements) {
        failures += one.failures;
        firstFailure ??= one.firstFailure;
      }
      const { used, resident } = await crew.memory();
      const atSeconds = (performance.now() - startedAt) / 1_000;
      seen.push({ atSeconds, cycles, here: used, resident, server: await keptBytes(admin) });
    }
    const values = { ...growthOf(seen, keys), cycles, keys: await admin.dbsize() };
    const series = {
      "here MB": points(seen, "here"),
      "server MB": points(seen, "server"),
      "resident MB": points(seen, "resident"),
    };
    yield { case: label, settings: crew.settings, values, series, failures, firstFailure };
  }

  return {
    name: "churn",
    title: "Many different keys come and go",
    method: `${tasks} tasks in one process take and release ${keys.toLocaleString("en-US")} keys, round and round, for ${minutes} minutes. At first: the median of the first third of all looks after the first round; at last: of the last third.`,
    entrants,
    absent: [],
    reference: null,
    ground: "server",
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

/** Not numbers where there was no round after the first one. */
export function growthOf(seen: readonly Look[], keys: number): Record<string, number> {
  const settled = seen.filter(({ cycles }) => cycles >= keys);
  const third = Math.ceil(settled.length / 3);
  const [first, last] = [settled.slice(0, third), settled.slice(-third)];
  const of = (looks: readonly Look[], what: "here" | "server"): number =>
    median(looks.map((look) => look[what])) / 1e6;
  const growth = (what: "here" | "server"): number => (of(last, what) / of(first, what) - 1) * 100;
  return {
    here: of(first, "here"),
    hereLast: of(last, "here"),
    hereGrowth: growth("here"),
    server: of(first, "server"),
    serverLast: of(last, "server"),
    serverGrowth: growth("server"),
  };
}

function points(seen: readonly Look[], what: "here" | "server" | "resident"): Point[] {
  return seen.map((look) => [Math.round(look.atSeconds * 10) / 10, Math.round(look[what] / 1e4) / 100]);
}
