import { contentionMetrics, contentionOf, contentionPanels, evenShare } from "../measure/contention.ts";
import type { Engine } from "../engines/engine.ts";
import { WorkerGroup } from "../run/workers.ts";
import { assertOverlapIn } from "../run/overlap.ts";
import { figures } from "../measure/figures.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { placeOf } from "./place.ts";
import type { EngineSite, Figures, Site, Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

const tasksPerProcess = 8;

export interface HotSize {
  readonly timing: Timing;
  /** The hold times, each measured with each number of processes. */
  readonly holdsMs: readonly number[];
  readonly processCounts: readonly number[];
}

interface Case {
  readonly processes: number;
  readonly holdMs: number;
}

/** A contended lock: one key, and tasks in several processes that never pause. */
export function hot(
  contestants: readonly ContestantName[],
  { timing, holdsMs, processCounts }: HotSize,
  rounds: number,
  engine: Engine | null = null,
): Suite {
  const cases = processCounts.flatMap((processes) => holdsMs.map((holdMs) => ({ processes, holdMs })));

  async function* measure(
    contestant: ContestantName,
    site: Site | EngineSite,
  ): AsyncGenerator<Figures, void, void> {
    for (const one of cases) {
      // Each case has new processes and a new key, so that no waiter of the previous case remains.
      await using workerGroup = await WorkerGroup.open(contestant, site, one.processes);
      await workerGroup.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        keys: { by: "name", name: `hot:${one.processes}:${one.holdMs}` },
        ttlMs: 10_000,
        holdMs: one.holdMs,
        isWatched: true,
      });
      const window = await measureWindow(workerGroup, site, timing);
      assertOverlapIn(window.measurements, 1);
      yield figures(label(one), workerGroup, window, contentionOf(window));
    }
  }

  const even = processCounts.map((processes) => evenShare(processes * tasksPerProcess)).join(", ");
  return {
    ...placeOf("hot", "One hot key", engine),
    method: `${tasksPerProcess} tasks in each of ${processCounts.join(", ")} processes; an even share is ${even}. ${timingText(timing)}.`,
    contestants,
    rounds,
    cases: cases.map(label),
    metrics: contentionMetrics,
    panels: contentionPanels,
    measure,
  };
}

function label({ processes, holdMs }: Case): string {
  return `${processes === 1 ? "1 process" : `${processes} processes`}, hold ${holdMs} ms`;
}
