import { busynessOf, busynessMetrics } from "../measure/cpu-use.ts";
import { Crew } from "../run/workers.ts";
import { figures } from "../measure/figures.ts";
import type { Entrant } from "../run/contestant-list.ts";
import type { Figures, Site, Suite } from "./suite.ts";
import { timingText, watch, type Timing } from "../measure/window.ts";

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
  entrants: readonly Entrant[],
  { timing, waiters, keyCounts }: WaitingSize,
  rounds: number,
): Suite {
  const label = (count: number): string =>
    `${waiters.toLocaleString("en-US")} waiters, ${count === 1 ? "one key" : `${count.toLocaleString("en-US")} keys`}`;

  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    for (const count of keyCounts) {
      const keys = Array.from({ length: count }, (_, index) => `waited-for:${count}:${index}`);
      await using holder = await Crew.open(entrant, site, 1);
      await holder.start({ kind: "keep", keys, ttlMs: heldForMs });
      await using crew = await Crew.open(entrant, site, 1);
      await crew.start({ kind: "queue", keys, waiters, ttlMs: 10_000 });
      const window = await watch(crew, site, timing);
      yield figures(label(count), crew, window, busynessOf(window));
    }
  }

  return {
    name: "waiting",
    title: "Waiting while nothing happens",
    method: `One process with all waiters, another that holds what they wait for and does nothing. ${timingText(timing)}.`,
    entrants,
    absent: [],
    reference: "raw",
    ground: "server",
    rounds,
    cases: keyCounts.map(label),
    metrics: busynessMetrics,
    panels: busynessMetrics.map(({ id }) => ({ form: "bars", metric: id })),
    measure,
  };
}
