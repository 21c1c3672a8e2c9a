import { contentionOf, evenShare } from "../contention.ts";
import { Crew } from "../crew.ts";
import { figures } from "../figures.ts";
import type { Entrant } from "../roster.ts";
import type { Figures, Metric, Site, Suite } from "../suite.ts";
import { timingText, watch, type Timing } from "../window.ts";

const processes = 4;
const tasksPerProcess = 8;
const holdsMs = [0, 1];

const metrics: readonly Metric[] = [
  { id: "rate", label: "acquisitions/s", digits: 0, best: "most" },
  { id: "p50", label: "wait p50 ms", digits: 2 },
  { id: "p99", label: "wait p99 ms", digits: 1 },
  { id: "max", label: "wait max ms", digits: 0 },
  { id: "p50ByTime", label: "p50 by time ms", digits: 1, best: "least" },
  { id: "smallest", label: "smallest share %", digits: 2 },
  { id: "largest", label: "largest share %", digits: 2 },
  { id: "commands", label: "commands/acquisition", digits: 1 },
];

/** What a lock is worth when everybody wants it: one key, and tasks in several processes that never pause. */
export function hot(entrants: readonly Entrant[], timing: Timing, rounds: number): Suite {
  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    for (const holdMs of holdsMs) {
      // New processes and a new key for each case: the waiters of the one before are gone.
      await using crew = await Crew.open(entrant, site, processes);
      await crew.start({
        kind: "cycle",
        tasks: tasksPerProcess,
        key: `hot:${holdMs}`,
        ttlMs: 10_000,
        holdMs,
      });
      const window = await watch(crew, site, timing);
      yield figures(label(holdMs), crew, window, contentionOf(window));
    }
  }

  return {
    name: "hot",
    title: "One hot key",
    method: `${processes} processes × ${tasksPerProcess} tasks; an even share is ${evenShare(processes * tasksPerProcess)}. ${timingText(timing)}.`,
    entrants,
    reference: "raw",
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
