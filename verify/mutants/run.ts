import { Copy } from "./copy.ts";
import type { Mutant } from "./mutant.ts";
import { judge, judgeUnmutated, type Form, type Verdict } from "./trial.ts";

export interface RunOptions {
  readonly root: string;
  readonly workers: number;
  readonly form: Form;
  /** Whether what is to kill is first shown to pass without a mutant. */
  readonly checksUnmutated: boolean;
  readonly say: (line: string) => void;
  readonly judged: (verdict: Verdict) => void;
}

/**
 * Tries all mutants, each worker in a copy of its own.
 * @throws {Error} where the library fails without a mutant
 */
export async function run(mutants: readonly Mutant[], options: RunOptions): Promise<Verdict[]> {
  const { root, workers, form, checksUnmutated, say, judged } = options;
  using copies = new Copies();
  const first = copies.open(root);
  if (checksUnmutated) {
    say("the library as it is");
    const failures = await judgeUnmutated(first, mutants, form);
    if (failures.length > 0) {
      throw new Error(
        `The library fails without a mutant, so nothing could be judged:\n${failures.join("\n")}`,
      );
    }
  }
  const verdicts = new Map<Mutant, Verdict>();
  const left = [...mutants];
  const work = async (copy: Copy): Promise<void> => {
    for (let mutant = left.shift(); mutant; mutant = left.shift()) {
      const verdict = await judge(copy, mutant, form);
      verdicts.set(mutant, verdict);
      judged(verdict);
    }
  };
  const others = Array.from({ length: Math.min(workers, mutants.length) - 1 }, () => copies.open(root));
  await Promise.all([first, ...others].map(work));
  return mutants.flatMap((mutant) => verdicts.get(mutant) ?? []);
}

class Copies implements Disposable {
  readonly #copies: Copy[] = [];

  open(root: string): Copy {
    const copy = new Copy(root);
    this.#copies.push(copy);
    return copy;
  }

  [Symbol.dispose](): void {
    for (const copy of this.#copies) {
      copy[Symbol.dispose]();
    }
  }
}
