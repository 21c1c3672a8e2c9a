import { contentionMetrics, contentionOf, contentionPanels, evenShare } from "../measure/contention.ts";
import { Crew } from "../run/workers.ts";
import { refuseCrowdIn } from "../run/mixed-callers.ts";
import { nodesText, withDown } from "../run/nodes-down.ts";
import { figures } from "../measure/figures.ts";
import { longestTtlMs } from "../run/quorum-settings.ts";
import { noQuorum, type Entrant } from "../run/contestant-list.ts";
import { firstServers, type Figures, type Site, type Suite } from "./suite.ts";
import { timingText, watch, type Timing } from "../measure/window.ts";
import type { Nodes } from "./redlock-uncontended.ts";

const processes = 4;
const tasksPerProcess = 8;
const holdMs = 1;

export interface RedlockHotSize {
  readonly sites: readonly Nodes[];
  readonly timing: Timing;
}

/** What a lock on a majority is worth when everybody wants it: one key, and tasks in several processes that never pause. */
export function redlockHot(
  entrants: readonly Entrant[],
  { sites, timing }: RedlockHotSize,
  rounds: number,
): Suite {
  async function* measure(entrant: Entrant, whole: Site): AsyncGenerator<Figures, void, void> {
    for (const { nodes, down } of sites) {
      const site = await withDown(firstServers(whole, nodes), down);
      await using crew = await Crew.open(entrant, site, processes);
      await crew.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        keys: { by: "name", name: `redlock-hot:${nodes}:${down}` },
        ttlMs: longestTtlMs,
        holdMs,
        isWatched: true,
      });
      const window = await watch(crew, site, timing);
      refuseCrowdIn(window.measurements, 1);
      yield figures(label({ nodes, down }), crew, window, contentionOf(window));
    }
  }

  const tasks = processes * tasksPerProcess;
  return {
    name: "redlock-hot",
    title: "A majority of the nodes: one hot key",
    method: `${processes} processes × ${tasksPerProcess} tasks; an even share is ${evenShare(tasks)}. ${timingText(timing)}.`,
    entrants,
    absent: noQuorum,
    reference: "redlock",
    ground: "quorum",
    rounds,
    cases: sites.map(label),
    metrics: contentionMetrics,
    panels: contentionPanels,
    measure,
  };
}

function label({ nodes, down }: Nodes): string {
  return `${nodesText(nodes, down)}, hold ${holdMs} ms`;
}
