interface ReportedNumber {
  readonly at: number;
  readonly largest: bigint;
}

/** The numbers of one key's grants, where several may share it: which of them have been told, and when. */
export class FencingNumbers {
  /** The largest number that had been told at a time, rising. */
  readonly #reportedNumbers: ReportedNumber[] = [];
  readonly #largestByWeight = new Map<number, bigint>();
  readonly #weights = new Map<bigint, number>();

  /**
   * What is wrong with the number of a grant, undefined: nothing.
   * @param capacity who takes more of it together cannot have the key at the same time
   * @param mayBeEqual to that of another reader
   */
  problemOf(
    fencingToken: bigint,
    request: { readonly weight: number; readonly since: number },
    capacity: number,
    mayBeEqual: boolean,
  ): string | undefined {
    const largestReported = this.largestBefore(request.since);
    if (fencingToken <= largestReported) {
      return `who asked when ${largestReported} had been told`;
    }
    for (const [weight, largest] of this.#largestByWeight) {
      if (weight + request.weight > capacity && fencingToken <= largest) {
        return `after ${largest}, which leaves no room for it`;
      }
    }
    const isDuplicate =
      this.#weights.has(fencingToken) && !(mayBeEqual && this.#weights.get(fencingToken) === request.weight);
    return isDuplicate ? "which another has" : undefined;
  }

  largestBefore(since: number): bigint {
    return this.#reportedNumbers.findLast(({ at }) => at < since)?.largest ?? 0n;
  }

  /** The largest that was told, undefined: none was. */
  get largest(): ReportedNumber | undefined {
    return this.#reportedNumbers.at(-1);
  }

  reported(fencingToken: bigint, weight: number, at: number): void {
    const largest = this.#reportedNumbers.at(-1)?.largest ?? 0n;
    if (fencingToken > largest) {
      this.#reportedNumbers.push({ at, largest: fencingToken });
    }
    const ofWeight = this.#largestByWeight.get(weight) ?? 0n;
    this.#largestByWeight.set(weight, fencingToken > ofWeight ? fencingToken : ofWeight);
    this.#weights.set(fencingToken, weight);
  }
}
