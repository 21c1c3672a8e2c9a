import { cpuFigures, cpuMetrics } from "../measure/cpu-use.ts";
import { WorkerGroup } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import type { Figures, Site, Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

/** Longer than anybody measures: nothing is renewed and nothing expires. */
const heldForMs = 3_600_000;

export interface WaitingSize {
  readonly timing: Timing;
  readonly waiters: number;
  /** Over so many keys, in turn. */
  readonly keyCounts: readonly number[];
}

/** What it costs to wait while nothing happens: locks that another process keeps, and nobody releases. */
export function waiting(
  contestants: readonly ContestantName[],
  { timing, waiters, keyCounts }: WaitingSize,
  rounds: number,
): Suite {
  const label = (count: number): string =>
    `${waiters.toLocaleString("en-US")} waiters, ${count === 1 ? "one key" : `${count.toLocaleString("en-US")} keys`}`;

  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    for (const count of keyCounts) {
      const keys = Array.from({ length: count }, (_, index) => `waited-for:${count}:${index}`);
      await using holder = await WorkerGroup.open(contestant, site, 1);
      await holder.start({ kind: "keep", keys, ttlMs: heldForMs });
      await using workerGroup = await WorkerGroup.open(contestant, site, 1);
      await workerGroup.start({ kind: "queue", keys, waiters, ttlMs: 10_000 });
      const window = await measureWindow(workerGroup, site, timing);
      yield figures(label(count), workerGroup, window, cpuFigures(window));
    }
  }

  return {
    name: "waiting",
    title: "Waiting while nothing happens",
    method: `One process with all waiters, another that holds what they wait for and does nothing. ${timingText(timing)}.`,
    contestants,
    absent: [],
    reference: "raw",
    topology: "server",
    rounds,
    cases: keyCounts.map(label),
    metrics: cpuMetrics,
    panels: cpuMetrics.map(({ id }) => ({ form: "bars", metric: id })),
    measure,
  };
}
