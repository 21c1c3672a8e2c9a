import { costOf } from "../measure/cost.ts";
import { Crew } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { Keys } from "../run/protocol.ts";
import type { Entrant } from "../run/contestant-list.ts";
import type { Figures, Metric, Site, Suite } from "./suite.ts";
import { timingText, watch, type Timing } from "../measure/window.ts";

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
  readonly keys: Keys;
}

export interface UncontendedSize {
  readonly timing: Timing;
  readonly taskCounts: readonly number[];
}

/** What a lock costs without contention: one process, acquire and release without pause, first with fresh keys. */
export function uncontended(
  entrants: readonly Entrant[],
  { timing, taskCounts }: UncontendedSize,
  rounds: number,
): Suite {
  const cases = [
    ...casesOf("fresh keys", { by: "acquisition" }),
    ...casesOf("a key per task", { by: "task" }),
  ];

  function casesOf(form: string, keys: Keys): Case[] {
    return taskCounts.map((tasks) => ({
      label: `${form}, ${tasks === 1 ? "1 task" : `${tasks} tasks`}`,
      tasks,
      keys,
    }));
  }

  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    await using crew = await Crew.open(entrant, site, 1);
    for (const { label, tasks, keys } of cases) {
      await crew.start({ kind: "cycle", tasks, keys, ttlMs: 10_000, holdMs: 0 });
      const window = await watch(crew, site, timing);
      await crew.stop();
      yield figures(label, crew, window, costOf(window));
    }
  }

  return {
    name: "uncontended",
    title: "Uncontended: acquire and release",
    method: `One process. Fresh keys: a new key for every acquisition. ${timingText(timing)}.`,
    entrants,
    absent: [],
    reference: "raw",
    ground: "server",
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
