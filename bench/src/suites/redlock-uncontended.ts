import { costOf } from "../measure/cost.ts";
import { WorkerGroup } from "../run/workers.ts";
import { nodesText, withUnreachable } from "../run/unreachable-nodes.ts";
import { figures } from "../measure/figures.ts";
import { longestTtlMs } from "../run/quorum-settings.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { noQuorum } from "../run/missing-contestants.ts";
import { firstServers, type Figures, type Metric, type Site, type Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

const metrics: readonly Metric[] = [
  { id: "rate", label: "pairs/s", digits: 0, best: "most" },
  { id: "p50", label: "acquire p50 ms", digits: 2 },
  { id: "p99", label: "acquire p99 ms", digits: 2 },
  { id: "commands", label: "commands/pair", digits: 1 },
  { id: "cpu", label: "client CPU µs/pair", digits: 0 },
  { id: "serverCpu", label: "server CPU µs/pair", digits: 0 },
];

export interface Nodes {
  readonly nodes: number;
  readonly unreachable: number;
}

export interface RedlockUncontendedSize {
  readonly timing: Timing;
  /** The numbers of tasks, each measured on each site. */
  readonly taskCounts: readonly number[];
  readonly sites: readonly Nodes[];
}

/** The cost of a lock on a majority without contention: one process, and a key for each task. */
export function redlockUncontended(
  contestants: readonly ContestantName[],
  { timing, taskCounts, sites }: RedlockUncontendedSize,
  rounds: number,
): Suite {
  async function* measure(contestant: ContestantName, fullSite: Site): AsyncGenerator<Figures, void, void> {
    for (const { nodes, unreachable } of sites) {
      const site = await withUnreachable(firstServers(fullSite, nodes), unreachable);
      await using workerGroup = await WorkerGroup.open(contestant, site, 1);
      for (const tasks of taskCounts) {
        await workerGroup.start({
          kind: "cycle",
          tasks,
          keys: { by: "task" },
          ttlMs: longestTtlMs,
          holdMs: 0,
        });
        const window = await measureWindow(workerGroup, site, timing);
        await workerGroup.stop();
        yield figures(label({ nodes, unreachable }, tasks), workerGroup, window, costOf(window));
      }
    }
  }

  return {
    name: "redlock-uncontended",
    title: "A majority of the nodes: acquire and release, uncontended",
    method: `One process, a key per task. ${timingText(timing)}.`,
    contestants,
    absent: noQuorum,
    reference: "redlock",
    topology: "quorum",
    rounds,
    cases: sites.flatMap((site) => taskCounts.map((tasks) => label(site, tasks))),
    metrics,
    panels: [
      { form: "bars", metric: "rate" },
      { form: "spans", scale: "log", label: "acquire p50 to p99 ms", metrics: ["p50", "p99"] },
    ],
    measure,
  };
}

function label({ nodes, unreachable }: Nodes, tasks: number): string {
  return `${nodesText(nodes, unreachable)}, ${tasks === 1 ? "1 task" : `${tasks} tasks`}`;
}
