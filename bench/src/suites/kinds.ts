import { costOf } from "../measure/cost.ts";
import { WorkerGroup } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { severalText } from "../run/several-keys.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

const tasks = 8;

const metrics: readonly Metric[] = [
  { id: "rate", label: "pairs/s", digits: 0, best: "most" },
  { id: "p50", label: "acquire p50 ms", digits: 2 },
  { id: "p99", label: "acquire p99 ms", digits: 2 },
  { id: "commands", label: "commands/pair", digits: 1 },
  { id: "cpu", label: "client CPU µs/pair", digits: 0 },
  { id: "serverCpu", label: "server CPU µs/pair", digits: 0 },
];

/** The cost of each kind of lock without contention, compared with the mutex. */
export function kinds(contestants: readonly ContestantName[], timing: Timing, rounds: number): Suite {
  const label = `${tasks} tasks`;

  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    await using workerGroup = await WorkerGroup.open(contestant, site, 1);
    await workerGroup.start({ kind: "cycle", tasks, keys: { by: "task" }, ttlMs: 10_000, holdMs: 0 });
    const window = await measureWindow(workerGroup, site, timing);
    await workerGroup.stop();
    yield figures(label, workerGroup, window, costOf(window));
  }

  return {
    name: "kinds",
    title: "Kinds of lock, uncontended",
    method: `One process, ${tasks} tasks. Each acquires and releases its own lock; several: ${severalText}. ${timingText(timing)}.`,
    contestants,
    absent: [],
    reference: "holdfast",
    topology: "server",
    rounds,
    cases: [label],
    metrics,
    panels: [
      { form: "bars", metric: "rate" },
      { form: "spans", scale: "log", label: "acquire p50 to p99 ms", metrics: ["p50", "p99"] },
    ],
    measure,
  };
}
