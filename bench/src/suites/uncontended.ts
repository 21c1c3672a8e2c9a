import { costOf } from "../measure/cost.ts";
import type { Engine } from "../engines/engine.ts";
import { WorkerGroup } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { KeyChoice } from "../run/protocol.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { placeOf } from "./place.ts";
import type { EngineSite, Figures, Metric, Site, Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

const metrics: readonly Metric[] = [
  { id: "rate", label: "cycles/s", digits: 0, best: "most" },
  { id: "p50", label: "acquire p50 ms", digits: 2 },
  { id: "p99", label: "acquire p99 ms", digits: 2 },
  { id: "commands", label: "commands/cycle", digits: 2 },
  { id: "cpu", label: "client CPU µs/cycle", digits: 0, best: "least" },
  { id: "serverCpu", label: "server CPU µs/cycle", digits: 0 },
];

interface Case {
  readonly label: string;
  readonly tasks: number;
  readonly keys: KeyChoice;
}

export interface UncontendedSize {
  readonly timing: Timing;
  readonly taskCounts: readonly number[];
}

/** The cost of a lock without contention: one process, which acquires and releases without pause, first with fresh keys. */
export function uncontended(
  contestants: readonly ContestantName[],
  { timing, taskCounts }: UncontendedSize,
  rounds: number,
  engine: Engine | null = null,
): Suite {
  const cases = [
    ...casesOf("fresh keys", { by: "acquisition" }),
    ...casesOf("a key per task", { by: "task" }),
  ];

  function casesOf(form: string, keys: KeyChoice): Case[] {
    return taskCounts.map((tasks) => ({
      label: `${form}, ${tasks === 1 ? "1 task" : `${tasks} tasks`}`,
      tasks,
      keys,
    }));
  }

  async function* measure(
    contestant: ContestantName,
    site: Site | EngineSite,
  ): AsyncGenerator<Figures, void, void> {
    await using workerGroup = await WorkerGroup.open(contestant, site, 1);
    for (const { label, tasks, keys } of cases) {
      await workerGroup.start({ kind: "cycle", tasks, keys, ttlMs: 10_000, holdMs: 0 });
      const window = await measureWindow(workerGroup, site, timing);
      await workerGroup.stop();
      yield figures(label, workerGroup, window, costOf(window));
    }
  }

  return {
    ...placeOf("uncontended", "Uncontended: acquire and release", engine),
    method: `One process. Fresh keys: a new key for every acquisition. ${timingText(timing)}.`,
    contestants,
    rounds,
    cases: cases.map(({ label }) => label),
    metrics,
    panels: [
      { form: "bars", metric: "rate" },
      { form: "spans", scale: "log", label: "acquire p50 to p99 ms", metrics: ["p50", "p99"] },
      { form: "bars", metric: "cpu" },
    ],
    measure,
  };
}
