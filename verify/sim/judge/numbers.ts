interface Told {
  readonly at: number;
  readonly largest: bigint;
}

/** The numbers of one key's grants, where several may share it: which of them have been told, and when. */
export class Numbers {
  /** The largest number that had been told at a time, rising. */
  readonly #told: Told[] = [];
  readonly #largest = new Map<number, bigint>();
  readonly #weights = new Map<bigint, number>();

  /**
   * What is wrong with the number of a grant, undefined: nothing.
   * @param room who takes more of it together cannot have the key at the same time
   * @param mayBeEqual to that of another reader
   */
  wrong(
    number: bigint,
    asked: { readonly weight: number; readonly since: number },
    room: number,
    mayBeEqual: boolean,
  ): string | undefined {
    const before = this.largestBefore(asked.since);
    if (number <= before) {
      return `who asked when ${before} had been told`;
    }
    for (const [weight, largest] of this.#largest) {
      if (weight + asked.weight > room && number <= largest) {
        return `after ${largest}, which leaves no room for it`;
      }
    }
    const isTaken = this.#weights.has(number) && !(mayBeEqual && this.#weights.get(number) === asked.weight);
    return isTaken ? "which another has" : undefined;
  }

  largestBefore(since: number): bigint {
    return this.#told.findLast(({ at }) => at < since)?.largest ?? 0n;
  }

  /** The largest that was told, undefined: none was. */
  get largest(): Told | undefined {
    return this.#told.at(-1);
  }

  told(number: bigint, weight: number, at: number): void {
    const largest = this.#told.at(-1)?.largest ?? 0n;
    if (number > largest) {
      this.#told.push({ at, largest: number });
    }
    const ofWeight = this.#largest.get(weight) ?? 0n;
    this.#largest.set(weight, number > ofWeight ? number : ofWeight);
    this.#weights.set(number, weight);
  }
}
