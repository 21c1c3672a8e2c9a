import { contentionOf, evenShare } from "../contention.ts";
import { Crew } from "../crew.ts";
import { refuseCrowd, writerWeight } from "../crowd.ts";
import { figures } from "../figures.ts";
import type { Entrant } from "../roster.ts";
import { permits } from "../semaphore-settings.ts";
import type { Figures, Metric, Site, Suite } from "../suite.ts";
import { timingText, watch, type Timing } from "../window.ts";

const processes = 4;
const tasksPerProcess = 8;
const tasks = processes * tasksPerProcess;
const holdsMs = [0, 1];
const writesOneIn = 10;

const metrics: readonly Metric[] = [
  { id: "rate", label: "acquisitions/s", digits: 0, best: "most" },
  { id: "p50", label: "wait p50 ms", digits: 2 },
  { id: "p99", label: "wait p99 ms", digits: 1, best: "least" },
  { id: "max", label: "wait max ms", digits: 0, against: "p99" },
  { id: "p50ByTime", label: "p50 by time ms", digits: 1 },
  { id: "smallest", label: "smallest share %", digits: 2 },
  { id: "largest", label: "largest share %", digits: 2 },
  { id: "commands", label: "commands/acquisition", digits: 1 },
];

/** What it is worth to let readers in together: one key, and tasks in several processes that mostly read. */
export function readWrite(entrants: readonly Entrant[], timing: Timing, rounds: number): Suite {
  return shared(entrants, timing, rounds, {
    name: "read-write",
    title: "Read-write: one key, of ten turns nine read",
    method: "Who has a mutex only does the same work with it, one after another",
    reference: "raw",
    crowd: writerWeight, // one writer and nobody beside
    writesOneIn,
  });
}

/** What a few permits are worth that many want. */
export function semaphore(entrants: readonly Entrant[], timing: Timing, rounds: number): Suite {
  return shared(entrants, timing, rounds, {
    name: "semaphore",
    title: `A semaphore of ${permits}`,
    method: "Each turn takes one permit",
    reference: null,
    crowd: permits,
  });
}

interface Kind extends Pick<Suite, "name" | "title" | "method" | "reference"> {
  /** How much may be inside at once. */
  readonly crowd: number;
  readonly writesOneIn?: number;
}

function shared(
  entrants: readonly Entrant[],
  timing: Timing,
  rounds: number,
  { crowd, writesOneIn, ...kind }: Kind,
): Suite {
  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    for (const holdMs of holdsMs) {
      await using crew = await Crew.open(entrant, site, processes);
      await crew.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        key: `${kind.name}:${holdMs}`,
        ttlMs: 10_000,
        holdMs,
        isWatched: true,
        ...(writesOneIn === undefined ? {} : { writesOneIn }),
      });
      const window = await watch(crew, site, timing);
      refuseCrowd(
        window.measurements.map(({ stays }) => stays),
        crowd,
      );
      yield figures(label(holdMs), crew, window, contentionOf(window));
    }
  }

  return {
    ...kind,
    method: `${processes} processes × ${tasksPerProcess} tasks; an even share is ${evenShare(tasks)}. ${kind.method}. ${timingText(timing)}.`,
    entrants,
    ground: "server",
    rounds,
    cases: holdsMs.map(label),
    metrics,
    measure,
  };
}

function label(holdMs: number): string {
  return `hold ${holdMs} ms`;
}
