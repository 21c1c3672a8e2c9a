import { WorkerGroup } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { clientCpuMs, grantsIn, grantsPerSecond } from "../measure/statistics.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";
import { waitsOf } from "../measure/waits.ts";
import { timingText, measureWindow, type Timing, type Window } from "../measure/window.ts";

const tasksPerProcess = 32;
const exponent = 1;

const metrics: readonly Metric[] = [
  { id: "rate", label: "acquisitions/s", digits: 0, best: "most" },
  { id: "p50", label: "wait p50 ms", digits: 2 },
  { id: "p90", label: "wait p90 ms", digits: 1 },
  { id: "p99", label: "wait p99 ms", digits: 1, best: "least" },
  { id: "max", label: "wait max ms", digits: 0, against: "p99" },
  { id: "commands", label: "commands/acquisition", digits: 1 },
  { id: "cpu", label: "client CPU µs/acquisition", digits: 0 },
  { id: "serverCpu", label: "server CPU µs/acquisition", digits: 0 },
];

export interface SkewSize {
  readonly timing: Timing;
  readonly keys: number;
  readonly processes: number;
  readonly holdsMs: readonly number[];
}

/** A load between a single key and a key for each task. Most turns use a few keys, and the others are spread over many. */
export function skew(
  contestants: readonly ContestantName[],
  { timing, keys, processes, holdsMs }: SkewSize,
  rounds: number,
): Suite {
  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    for (const holdMs of holdsMs) {
      await using workerGroup = await WorkerGroup.open(contestant, site, processes);
      await workerGroup.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        // Each case has its own keys, because a worker that is killed during a hold leaves its key locked until the TTL has passed.
        keys: { by: "zipf", name: `skew:${holdMs}`, count: keys, exponent },
        ttlMs: 10_000,
        holdMs,
      });
      const window = await measureWindow(workerGroup, site, timing);
      yield figures(label(holdMs), workerGroup, window, valuesOf(window));
    }
  }

  return {
    name: "skew",
    title: "Many keys, few of them hot",
    method: `${processes} processes × ${tasksPerProcess} tasks, ${keys.toLocaleString("en-US")} keys; the k-th is wanted 1/k times as often as the first (Zipf), which is ${firstShare(keys)} of all turns. ${timingText(timing)}.`,
    contestants,
    absent: [],
    reference: "raw",
    topology: "server",
    rounds,
    cases: holdsMs.map(label),
    metrics,
    panels: [
      { form: "bars", metric: "rate" },
      {
        form: "spans",
        scale: "log",
        label: "wait p50, p90, p99, max ms",
        metrics: ["p50", "p90", "p99", "max"],
      },
    ],
    measure,
  };
}

function valuesOf({ measurements, serverCommands, serverCpuMs }: Window): Record<string, number> {
  const grants = grantsIn(measurements);
  return {
    rate: grantsPerSecond(measurements),
    ...waitsOf(measurements),
    commands: serverCommands / grants,
    cpu: (clientCpuMs(measurements) * 1000) / grants,
    serverCpu: (serverCpuMs * 1000) / grants,
  };
}

function firstShare(keys: number): string {
  let weights = 0;
  for (let rank = 1; rank <= keys; rank += 1) weights += rank ** -exponent;
  return `${(100 / weights).toFixed(0)} %`;
}

function label(holdMs: number): string {
  return `hold ${holdMs} ms`;
}
