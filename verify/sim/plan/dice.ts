import { manualRandom } from "holdfast/testing";

/** Chance that replays: the same seed, the same throws. */
export class Dice {
  readonly fraction: () => number;

  constructor(seed: number) {
    this.fraction = manualRandom(seed).nextFloat;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.fraction();
  }

  whole(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.whole(0, choices.length - 1)] as T;
  }

  /** As often as their shares say. */
  weigh<T>(shares: readonly (readonly [T, number])[]): T {
    let left = this.fraction() * shares.reduce((sum, [, share]) => sum + share, 0);
    for (const [choice, share] of shares) {
      left -= share;
      if (left < 0) {
        return choice;
      }
    }
    return (shares.at(-1) as readonly [T, number])[0];
  }

  /** As far as it goes, one way or the other, or anything between. */
  extreme(share: number): number {
    return this.pick([-share, share, this.between(-share, share)]);
  }
}
