import { Crew } from "../crew.ts";
import { figures } from "../figures.ts";
import type { Entrant } from "../roster.ts";
import { clientCpuMs, grantsIn, grantsPerSecond } from "../statistics.ts";
import type { Figures, Metric, Site, Suite } from "../suite.ts";
import { waitsOf } from "../waits.ts";
import { timingText, watch, type Timing, type Window } from "../window.ts";

const taskCounts = [1, 8, 64, 512];

const metrics: readonly Metric[] = [
  { id: "rate", label: "cycles/s", digits: 0, best: "most" },
  { id: "p50", label: "acquire p50 ms", digits: 2 },
  { id: "p99", label: "acquire p99 ms", digits: 2 },
  { id: "commands", label: "commands/cycle", digits: 2 },
  { id: "cpu", label: "client CPU µs/cycle", digits: 0 },
];

/** What a lock costs when nobody else wants it: one process, a key per task, acquire and release without pause. */
export function uncontended(entrants: readonly Entrant[], timing: Timing): Suite {
  async function* measure(entrant: Entrant, site: Site): AsyncGenerator<Figures, void, void> {
    await using crew = await Crew.open(entrant, site, 1);
    for (const tasks of taskCounts) {
      await crew.start({ kind: "cycle", tasks, key: null, ttlMs: 10_000, holdMs: 0 });
      const window = await watch(crew, site.admin, timing);
      await crew.stop();
      yield figures(label(tasks), crew, window, valuesOf(window));
    }
  }

  return {
    name: "uncontended",
    title: "Uncontended: acquire and release",
    method: `One process, a key per task. ${timingText(timing)}.`,
    entrants,
    cases: taskCounts.map(label),
    metrics,
    measure,
  };
}

function valuesOf({ measurements, serverCommands }: Window): Record<string, number> {
  const cycles = grantsIn(measurements);
  const { p50, p99 } = waitsOf(measurements);
  return {
    rate: grantsPerSecond(measurements),
    p50,
    p99,
    commands: serverCommands / cycles,
    cpu: (clientCpuMs(measurements) * 1000) / cycles,
  };
}

function label(tasks: number): string {
  return tasks === 1 ? "1 task" : `${tasks} tasks`;
}
