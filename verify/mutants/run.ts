import { WorkingCopy } from "./copy.ts";
import type { Mutant } from "./mutant.ts";
import { judgeMutant, judgeUnmutated, type TrialMode, type Verdict } from "./trial.ts";

export interface RunOptions {
  readonly root: string;
  readonly workers: number;
  readonly mode: TrialMode;
  /** Whether the killers must first pass without a mutant. */
  readonly checksUnmutated: boolean;
  readonly print: (line: string) => void;
  readonly onVerdict: (verdict: Verdict) => void;
}

/**
 * Judges all mutants. Each worker has a copy of its own.
 * @throws {Error} if the library fails without a mutant
 */
export async function run(mutants: readonly Mutant[], options: RunOptions): Promise<Verdict[]> {
  const { root, workers, mode, checksUnmutated, print, onVerdict } = options;
  using copies = new Copies();
  const first = copies.open(root);
  if (checksUnmutated) {
    print("the unmutated library");
    const failures = await judgeUnmutated(first, mutants, mode);
    if (failures.length > 0) {
      throw new Error(
        `The library fails without a mutant, so no mutant can be judged:\n${failures.join("\n")}`,
      );
    }
  }
  const verdicts = new Map<Mutant, Verdict>();
  const remaining = [...mutants];
  const work = async (copy: WorkingCopy): Promise<void> => {
    for (let mutant = remaining.shift(); mutant; mutant = remaining.shift()) {
      const verdict = await judgeMutant(copy, mutant, mode);
      verdicts.set(mutant, verdict);
      onVerdict(verdict);
    }
  };
  const others = Array.from({ length: Math.min(workers, mutants.length) - 1 }, () => copies.open(root));
  await Promise.all([first, ...others].map(work));
  return mutants.flatMap((mutant) => verdicts.get(mutant) ?? []);
}

class Copies implements Disposable {
  readonly #copies: WorkingCopy[] = [];

  open(root: string): WorkingCopy {
    const copy = new WorkingCopy(root);
    this.#copies.push(copy);
    return copy;
  }

  [Symbol.dispose](): void {
    for (const copy of this.#copies) {
      copy[Symbol.dispose]();
    }
  }
}
