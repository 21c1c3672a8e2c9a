import { costOf } from "../cost.ts";
import { Crew } from "../crew.ts";
import { figures } from "../figures.ts";
import type { Entrant } from "../roster.ts";
import type { Figures, Metric, Site, Suite } from "../suite.ts";
import { timingText, watch, type Timing } from "../window.ts";

const taskCounts = [1, 8, 64, 512];

const metrics: readonly Metric[] = [
  { id: "rate", label: "cycles/s", digits: 0, best: "most" },
  { id: "p50", label: "acquire p50 ms", digits: 2 },
  { id: "p99", label: "acquire p99 ms", digits: 2 },
  { id: "commands", label: "commands/cycle", digits: 2 },
  { id: "cpu", label: "client CPU µs/cycle", digits: 0 },
];

/** What a lock costs when nobody else wants it: one process, a key per task, acquire and release without pause. */
export function uncontended(entrants: readonly Entrant[], timing: Timing, rounds: number): Suite {
  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    await using crew = await Crew.open(entrant, site, 1);
    for (const tasks of taskCounts) {
      await crew.start({ kind: "cycle", tasks, key: null, ttlMs: 10_000, holdMs: 0 });
      const window = await watch(crew, site, timing);
      await crew.stop();
      yield figures(label(tasks), crew, window, costOf(window));
    }
  }

  return {
    name: "uncontended",
    title: "Uncontended: acquire and release",
    method: `One process, a key per task. ${timingText(timing)}.`,
    entrants,
    reference: "raw",
    ground: "server",
    rounds,
    cases: taskCounts.map(label),
    metrics,
    measure,
  };
}

function label(tasks: number): string {
  return tasks === 1 ? "1 task" : `${tasks} tasks`;
}
