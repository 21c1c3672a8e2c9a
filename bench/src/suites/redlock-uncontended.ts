import { costOf } from "../cost.ts";
import { Crew } from "../crew.ts";
import { figures } from "../figures.ts";
import { longestTtlMs } from "../quorum-settings.ts";
import type { Entrant } from "../roster.ts";
import type { Figures, Metric, Site, Suite } from "../suite.ts";
import { timingText, watch, type Timing } from "../window.ts";

const taskCounts = [1, 8, 64, 512];

const metrics: readonly Metric[] = [
  { id: "rate", label: "pairs/s", digits: 0, best: "most" },
  { id: "p50", label: "acquire p50 ms", digits: 2 },
  { id: "p99", label: "acquire p99 ms", digits: 2 },
  { id: "commands", label: "commands/pair", digits: 1 },
  { id: "cpu", label: "client CPU µs/pair", digits: 0 },
  { id: "serverCpu", label: "server CPU µs/pair", digits: 0 },
];

/** What a lock on a majority costs when nobody else wants it: one process, a key per task, acquire and release without pause. */
export function redlockUncontended(entrants: readonly Entrant[], timing: Timing, rounds: number): Suite {
  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    await using crew = await Crew.open(entrant, site, 1);
    for (const tasks of taskCounts) {
      await crew.start({ kind: "cycle", tasks, key: null, ttlMs: longestTtlMs, holdMs: 0 });
      const window = await watch(crew, site, timing);
      await crew.stop();
      yield figures(label(tasks), crew, window, costOf(window));
    }
  }

  return {
    name: "redlock-uncontended",
    title: "A majority of five: acquire and release, uncontended",
    method: `Five servers, one process, a key per task. ${timingText(timing)}.`,
    entrants,
    reference: "redlock",
    ground: "quorum",
    rounds,
    cases: taskCounts.map(label),
    metrics,
    measure,
  };
}

function label(tasks: number): string {
  return `5 nodes, ${tasks === 1 ? "1 task" : `${tasks} tasks`}`;
}
