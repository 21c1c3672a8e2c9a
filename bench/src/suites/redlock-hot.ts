import { contentionOf, evenShare } from "../contention.ts";
import { Crew } from "../crew.ts";
import { figures } from "../figures.ts";
import { longestTtlMs } from "../quorum-settings.ts";
import type { Entrant } from "../roster.ts";
import { firstServers, type Figures, type Metric, type Site, type Suite } from "../suite.ts";
import { timingText, watch, type Timing } from "../window.ts";

const processes = 4;
const tasksPerProcess = 8;
const holdMs = 1;

const metrics: readonly Metric[] = [
  { id: "rate", label: "acquisitions/s", digits: 0, best: "most" },
  { id: "p50", label: "wait p50 ms", digits: 2 },
  { id: "p99", label: "wait p99 ms", digits: 1, best: "least" },
  { id: "max", label: "wait max ms", digits: 0, against: "p99" },
  { id: "p50ByTime", label: "p50 by time ms", digits: 1 },
  { id: "smallest", label: "smallest share %", digits: 2 },
  { id: "largest", label: "largest share %", digits: 2 },
  { id: "fewest", label: "fewest grants", digits: 0 },
  { id: "commands", label: "commands/acquisition", digits: 1 },
];

export interface RedlockHotSize {
  readonly nodeCounts: readonly number[];
  readonly timing: Timing;
}

/** What a lock on a majority is worth when everybody wants it: one key, and tasks in several processes that never pause. */
export function redlockHot(
  entrants: readonly Entrant[],
  { nodeCounts, timing }: RedlockHotSize,
  rounds: number,
): Suite {
  async function* measure(entrant: Entrant, whole: Site): AsyncGenerator<Figures, void, void> {
    for (const nodes of nodeCounts) {
      const site = firstServers(whole, nodes);
      await using crew = await Crew.open(entrant, site, processes);
      const key = `redlock-hot:${nodes}`;
      await crew.start({ kind: "cycle", tasks: tasksPerProcess, key, ttlMs: longestTtlMs, holdMs });
      const window = await watch(crew, site, timing);
      yield figures(label(nodes), crew, window, contentionOf(window));
    }
  }

  const tasks = processes * tasksPerProcess;
  return {
    name: "redlock-hot",
    title: "A majority of the nodes: one hot key",
    method: `${processes} processes × ${tasksPerProcess} tasks; an even share is ${evenShare(tasks)}. ${timingText(timing)}.`,
    entrants,
    reference: "redlock",
    ground: "quorum",
    rounds,
    cases: nodeCounts.map(label),
    metrics,
    measure,
  };
}

function label(nodes: number): string {
  return `${nodes} nodes, hold ${holdMs} ms`;
}
