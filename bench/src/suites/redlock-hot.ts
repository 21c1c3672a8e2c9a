import { contentionMetrics, contentionOf, contentionPanels, evenShare } from "../measure/contention.ts";
import { WorkerGroup } from "../run/workers.ts";
import { assertOverlapIn } from "../run/overlap.ts";
import { nodesText, withUnreachable } from "../run/unreachable-nodes.ts";
import { figures } from "../measure/figures.ts";
import { longestTtlMs } from "../run/quorum-settings.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { noQuorum } from "../run/missing-contestants.ts";
import { firstServers, type Figures, type Site, type Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";
import type { Nodes } from "./redlock-uncontended.ts";

const processes = 4;
const tasksPerProcess = 8;
const holdMs = 1;

export interface RedlockHotSize {
  readonly sites: readonly Nodes[];
  readonly timing: Timing;
}

/** A contended lock on a majority: one key, and tasks in several processes that never pause. */
export function redlockHot(
  contestants: readonly ContestantName[],
  { sites, timing }: RedlockHotSize,
  rounds: number,
): Suite {
  async function* measure(contestant: ContestantName, fullSite: Site): AsyncGenerator<Figures, void, void> {
    for (const { nodes, unreachable } of sites) {
      const site = await withUnreachable(firstServers(fullSite, nodes), unreachable);
      await using workerGroup = await WorkerGroup.open(contestant, site, processes);
      await workerGroup.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        keys: { by: "name", name: `redlock-hot:${nodes}:${unreachable}` },
        ttlMs: longestTtlMs,
        holdMs,
        isWatched: true,
      });
      const window = await measureWindow(workerGroup, site, timing);
      assertOverlapIn(window.measurements, 1);
      yield figures(label({ nodes, unreachable }), workerGroup, window, contentionOf(window));
    }
  }

  const tasks = processes * tasksPerProcess;
  return {
    name: "redlock-hot",
    title: "A majority of the nodes: one hot key",
    method: `${processes} processes × ${tasksPerProcess} tasks; an even share is ${evenShare(tasks)}. ${timingText(timing)}.`,
    contestants,
    absent: noQuorum,
    reference: "redlock",
    topology: "quorum",
    rounds,
    cases: sites.map(label),
    metrics: contentionMetrics,
    panels: contentionPanels,
    measure,
  };
}

function label({ nodes, unreachable }: Nodes): string {
  return `${nodesText(nodes, unreachable)}, hold ${holdMs} ms`;
}
