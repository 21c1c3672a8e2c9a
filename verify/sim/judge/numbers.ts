interface ReportedNumber {
  readonly at: number;
  readonly largest: bigint;
}

/** The numbers of one key's grants, if several holders may share the key: which numbers were reported, and when. */
export class FencingNumbers {
  /** The largest number that had been reported at each time, rising. */
  readonly #reportedNumbers: ReportedNumber[] = [];
  readonly #largestByWeight = new Map<number, bigint>();
  readonly #weights = new Map<bigint, number>();

  /**
   * Describes what is wrong with the number of a grant; undefined: nothing.
   * @param capacity requests whose weights exceed this sum cannot hold the key at the same time
   * @param mayBeEqual the number may be that of another reader
   */
  problemOf(
    fencingToken: bigint,
    request: { readonly weight: number; readonly since: number },
    capacity: number,
    mayBeEqual: boolean,
  ): string | undefined {
    const largestReported = this.largestBefore(request.since);
    if (fencingToken <= largestReported) {
      return `, requested after ${largestReported} had been reported`;
    }
    for (const [weight, largest] of this.#largestByWeight) {
      if (weight + request.weight > capacity && fencingToken <= largest) {
        return ` after ${largest}, which leaves no capacity for it`;
      }
    }
    const isDuplicate =
      this.#weights.has(fencingToken) && !(mayBeEqual && this.#weights.get(fencingToken) === request.weight);
    return isDuplicate ? ", which another grant has" : undefined;
  }

  largestBefore(since: number): bigint {
    return this.#reportedNumbers.findLast(({ at }) => at < since)?.largest ?? 0n;
  }

  /** The largest number that was reported; undefined: none was. */
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
