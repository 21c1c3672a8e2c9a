import { errorText } from "../report/error-text.ts";
import type { ContestantName } from "./contestant-list.ts";
import type { Figures, Note, Sample, Suite } from "../suites/suite.ts";
import type { ServerPool } from "./server-pool.ts";

export interface Outcome {
  readonly samples: readonly Sample[];
  readonly notes: readonly Note[];
}

interface Turn {
  readonly suite: Suite;
  readonly contestant: ContestantName;
  readonly round: number;
}

/**
 * Runs all suites, turn by turn. A contestant that fails a turn is left out of the rest of the suite, and a note states the reason.
 */
export async function run(
  suites: readonly Suite[],
  serverPool: ServerPool,
  print: (line: string) => void,
): Promise<Outcome> {
  const samples: Sample[] = [];
  const notes: Note[] = [];
  const turns = suites.flatMap(runOrder);
  for (const [index, { suite, contestant, round }] of turns.entries()) {
    if (notes.some((note) => note.suite === suite.name && note.contestant === contestant)) continue;
    const where = `[${index + 1}/${turns.length}] ${suite.name}, round ${round} of ${suite.rounds}, ${contestant}`;
    try {
      for await (const figures of serverPool.measure(suite, contestant)) {
        samples.push({ suite: suite.name, contestant, round, ...figures });
        print(`${where}, ${figures.case}: ${headline(suite, figures)}`);
      }
    } catch (error) {
      const text = errorText(error);
      notes.push({ suite: suite.name, contestant, text });
      print(`${where}: left out: ${text}`);
    }
    await serverPool.clear(suite);
  }
  return { samples, notes: [...notes, ...failuresIn(samples)] };
}

/**
 * Each contestant has one turn in each round, so that drift of the machine affects all equally. Each round begins with another
 * contestant, so that none is always the first.
 */
function runOrder(suite: Suite): Turn[] {
  return Array.from({ length: suite.rounds }, (_, index) =>
    rotated(suite.contestants, index).map((contestant) => ({ suite, contestant, round: index + 1 })),
  ).flat();
}

function rotated<T>(list: readonly T[], offset: number): readonly T[] {
  const start = offset % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}

function headline({ metrics: [first] }: Suite, { values }: Figures): string {
  return first ? `${(values[first.id] ?? Number.NaN).toFixed(first.digits)} ${first.label}` : "";
}

function failuresIn(samples: readonly Sample[]): Note[] {
  return samples
    .filter(({ failures }) => failures > 0)
    .map(({ suite, contestant, round, case: label, failures, firstFailure }) => ({
      suite,
      contestant,
      text: `${label}, round ${round}: ${failures} calls failed, the first with "${firstFailure}"`,
    }));
}
