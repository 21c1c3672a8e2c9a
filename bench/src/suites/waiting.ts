import { cpuFigures, cpuMetrics } from "../measure/cpu-use.ts";
import { WorkerGroup } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import type { Figures, Site, Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

/** Longer than any measurement, so that no lease is renewed or expires. */
const heldForMs = 3_600_000;

export interface WaitingSize {
  readonly timing: Timing;
  readonly waiters: number;
  /** The numbers of keys over which the waiters are spread. */
  readonly keyCounts: readonly number[];
}

/** The cost of waiting for locks that another process holds and never releases. */
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
    method: `One process has all waiters. Another process holds the keys and does nothing else. ${timingText(timing)}.`,
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
