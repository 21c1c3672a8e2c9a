import { contentionMetrics, contentionOf, contentionPanels, evenShare } from "../measure/contention.ts";
import { WorkerGroup } from "../run/workers.ts";
import { assertOverlapIn, writerWeight } from "../run/overlap.ts";
import { figures } from "../measure/figures.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import { permits } from "../run/semaphore-settings.ts";
import type { Figures, Site, Suite } from "./suite.ts";
import { timingText, measureWindow, type Timing } from "../measure/window.ts";

const tasksPerProcess = 8;
const writesOneIn = 10;

export interface SharedSize {
  readonly timing: Timing;
  readonly processes: number;
  readonly holdsMs: readonly number[];
}

/** The gain if readers share a lock: one key, and tasks in several processes that mostly read. */
export function readWrite(contestants: readonly ContestantName[], size: SharedSize, rounds: number): Suite {
  return shared(contestants, size, rounds, {
    name: "read-write",
    title: "Read-write: one key, of ten turns nine read",
    method: "A contestant without a read-write lock does the same work with a mutex, one turn after another",
    absent: [],
    reference: "raw",
    maxOverlap: writerWeight, // one writer, and no other holder
    writesOneIn,
  });
}

/** A semaphore with few permits and many callers. */
export function semaphore(contestants: readonly ContestantName[], size: SharedSize, rounds: number): Suite {
  return shared(contestants, size, rounds, {
    name: "semaphore",
    title: `A semaphore of ${permits}`,
    method: "Each turn takes one permit",
    absent: [
      {
        contestants: ["raw", "redlock", "@verrou/core", "redlock-universal", "@sesamecare-oss/redlock"],
        reason: "no semaphore",
      },
    ],
    reference: null,
    maxOverlap: permits,
  });
}

interface Kind extends Pick<Suite, "name" | "title" | "method" | "absent" | "reference"> {
  /** The largest allowed weight of concurrent holders. */
  readonly maxOverlap: number;
  readonly writesOneIn?: number;
}

function shared(
  contestants: readonly ContestantName[],
  { timing, processes, holdsMs }: SharedSize,
  rounds: number,
  { maxOverlap, writesOneIn, ...kind }: Kind,
): Suite {
  async function* measure(contestant: ContestantName, site: Site): AsyncGenerator<Figures, void, void> {
    for (const holdMs of holdsMs) {
      await using workerGroup = await WorkerGroup.open(contestant, site, processes);
      await workerGroup.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        keys: { by: "name", name: `${kind.name}:${holdMs}` },
        ttlMs: 10_000,
        holdMs,
        isWatched: true,
        ...(writesOneIn === undefined ? {} : { writesOneIn }),
      });
      const window = await measureWindow(workerGroup, site, timing);
      assertOverlapIn(window.measurements, maxOverlap);
      yield figures(label(holdMs), workerGroup, window, contentionOf(window));
    }
  }

  return {
    ...kind,
    method: `${processes} processes × ${tasksPerProcess} tasks; an even share is ${evenShare(processes * tasksPerProcess)}. ${kind.method}. ${timingText(timing)}.`,
    contestants,
    topology: "server",
    rounds,
    cases: holdsMs.map(label),
    metrics: contentionMetrics,
    panels: contentionPanels,
    measure,
  };
}

function label(holdMs: number): string {
  return `hold ${holdMs} ms`;
}
