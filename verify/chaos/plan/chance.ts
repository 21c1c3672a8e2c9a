import { manualRandom } from "holdfast/testing";

/** Decisions that a seed repeats. */
export class Chance {
  readonly #fraction: () => number;

  constructor(seed: number) {
    this.#fraction = manualRandom(seed).nextFloat;
  }

  /** True in that share of the cases. */
  happens(share: number): boolean {
    return this.#fraction() < share;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.#fraction();
  }

  whole(low: number, high: number): number {
    return low + Math.floor(this.#fraction() * (high - low + 1));
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.whole(0, choices.length - 1)] as T;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const rest = [...items];
    return Array.from({ length: rest.length }, () => rest.splice(this.whole(0, rest.length - 1), 1)[0] as T);
  }
}
