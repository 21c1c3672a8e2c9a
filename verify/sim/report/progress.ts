import type { Result } from "../run/campaign.ts";

const everyMs = 2_000;

/** Tells from time to time how far a campaign is. */
export class Progress {
  readonly #runs: number;
  readonly #say: (line: string) => void;
  readonly #begun = performance.now();
  #toldAt = this.#begun;
  #failures = 0;

  constructor(runs: number, say: (line: string) => void) {
    this.#runs = runs;
    this.#say = say;
  }

  get ms(): number {
    return performance.now() - this.#begun;
  }

  see({ tally: { runs, grants }, failed }: Result): void {
    for (const { seed } of failed.slice(this.#failures)) {
      this.#say(`seed ${seed} failed`);
    }
    this.#failures = failed.length;
    if (performance.now() - this.#toldAt < everyMs) {
      return;
    }
    this.#toldAt = performance.now();
    const perSecond = (runs / this.ms) * 1_000;
    const leftSeconds = Math.ceil((this.#runs - runs) / perSecond);
    this.#say(
      `${runs} of ${this.#runs} schedules, ${grants} grants, ${failed.length} failed, ${perSecond.toFixed(1)} per second, ${leftSeconds} s left`,
    );
  }
}
