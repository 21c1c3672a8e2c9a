import { removeCopies, WorkingCopy } from "./copy.ts";
import type { Mutant } from "./mutant.ts";
import { judgeMutant, judgeUnmutated, type Verdict } from "./trial.ts";

export interface RunOptions {
  readonly root: string;
  readonly workers: number;
  /** Whether the killers must first pass without a mutant. */
  readonly checksUnmutated: boolean;
  readonly onVerdict: (verdict: Verdict) => void;
}

/**
 * Judges all mutants. Each worker has a copy of its own.
 * @throws {Error} if the library fails without a mutant
 */
export async function run(mutants: readonly Mutant[], options: RunOptions): Promise<Verdict[]> {
  const { root, workers, checksUnmutated, onVerdict } = options;
  try {
    const first = new WorkingCopy(root);
    if (checksUnmutated) {
      const failures = await judgeUnmutated(first, mutants);
      if (failures.length > 0) {
        throw new Error(`The library fails without a mutant:\n${failures.join("\n")}`);
      }
    }
    const verdicts = new Map<Mutant, Verdict>();
    const remaining = [...mutants];
    const work = async (copy: WorkingCopy): Promise<void> => {
      for (let mutant = remaining.shift(); mutant; mutant = remaining.shift()) {
        const verdict = await judgeMutant(copy, mutant);
        verdicts.set(mutant, verdict);
        onVerdict(verdict);
      }
    };
    const others = Array.from({ length: Math.min(workers, mutants.length) - 1 }, () => new WorkingCopy(root));
    await Promise.all([first, ...others].map(work));
    return mutants.flatMap((mutant) => verdicts.get(mutant) ?? []);
  } finally {
    removeCopies();
  }
}
