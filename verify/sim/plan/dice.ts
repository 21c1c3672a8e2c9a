import { manualRandom } from "holdfast/testing";

/** Random numbers that repeat: the same seed gives the same numbers. */
export class SeededRandom {
  readonly nextFloat: () => number;

  constructor(seed: number) {
    this.nextFloat = manualRandom(seed).nextFloat;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.nextFloat();
  }

  integer(low: number, high: number): number {
    return low + Math.floor(this.nextFloat() * (high - low + 1));
  }

  happens(probability: number): boolean {
    return this.nextFloat() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)] as T;
  }

  /** Each choice with the probability of its weight. */
  weighted<T>(weights: readonly (readonly [T, number])[]): T {
    let remaining = this.nextFloat() * weights.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [choice, weight] of weights) {
      remaining -= weight;
      if (remaining < 0) {
        return choice;
      }
    }
    return (weights.at(-1) as readonly [T, number])[0];
  }

  /** One of the two limits, or a number between them. */
  upTo(limit: number): number {
    return this.pick([-limit, limit, this.between(-limit, limit)]);
  }
}
