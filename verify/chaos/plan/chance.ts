import { manualRandom } from "holdfast/testing";

/** Random decisions that repeat for the same seed. */
export class SeededRandom {
  readonly #nextFloat: () => number;

  constructor(seed: number) {
    this.#nextFloat = manualRandom(seed).nextFloat;
  }

  /** True with this probability. */
  happens(probability: number): boolean {
    return this.#nextFloat() < probability;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.#nextFloat();
  }

  integer(low: number, high: number): number {
    return low + Math.floor(this.#nextFloat() * (high - low + 1));
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)] as T;
  }

  shuffled<T>(items: readonly T[]): T[] {
    const rest = [...items];
    return Array.from(
      { length: rest.length },
      () => rest.splice(this.integer(0, rest.length - 1), 1)[0] as T,
    );
  }
}
