import type { SeedRunResult } from "../run/campaign.ts";

const everyMs = 2_000;

/** Prints the progress of a run from time to time. */
export class Progress {
  readonly #runs: number;
  readonly #print: (line: string) => void;
  readonly #startedAt = performance.now();
  #reportedAt = this.#startedAt;
  #failures = 0;

  constructor(runs: number, print: (line: string) => void) {
    this.#runs = runs;
    this.#print = print;
  }

  get ms(): number {
    return performance.now() - this.#startedAt;
  }

  update({ tally: { runs, grants }, failed }: SeedRunResult): void {
    for (const { seed } of failed.slice(this.#failures)) {
      this.#print(`seed ${seed} failed`);
    }
    this.#failures = failed.length;
    if (performance.now() - this.#reportedAt < everyMs) {
      return;
    }
    this.#reportedAt = performance.now();
    const perSecond = (runs / this.ms) * 1_000;
    const remainingSeconds = Math.ceil((this.#runs - runs) / perSecond);
    this.#print(
      `${runs} of ${this.#runs} schedules, ${grants} grants, ${failed.length} failed, ${perSecond.toFixed(1)} per second, ${remainingSeconds} s left`,
    );
  }
}
