interface ReportedNumber {
  readonly at: number;
  readonly number: bigint;
}

/** Why the number of a grant is wrong. */
export interface NumberProblem {
  readonly text: string;
  /** When the number was reported that contradicts it. */
  readonly at: number;
}

/** A request for a key, with the part of the key's capacity that it needs. */
interface NumberedRequest {
  readonly since: number;
  readonly weight: number;
}

const none: ReportedNumber = { at: -Infinity, number: 0n };

/**
 * The fencing numbers of one key's grants, in the order in which callers learned of them. Numbers are unique and rise. If holders share the
 * key, a grant has a larger number only than those that were reported before its request, and than those that leave no capacity for it.
 */
export class FencingNumbers {
  /** The largest number that had been reported at each time, rising. */
  readonly #largest: ReportedNumber[] = [];
  readonly #largestByWeight = new Map<number, ReportedNumber>();
  readonly #weights = new Map<bigint, number>();

  /**
   * Undefined: the number of the grant is right.
   * @param capacity requests whose weights exceed this sum cannot hold the key at the same time
   * @param mayBeEqual the number may be that of another reader
   */
  problemOf(
    number: bigint,
    { since, weight }: NumberedRequest,
    capacity: number,
    mayBeEqual: boolean,
  ): NumberProblem | undefined {
    const before = this.largestBefore(since);
    if (number <= before.number) {
      return { text: `requested after ${before.number} had been reported`, at: before.at };
    }
    const excluded = this.excludedProblemOf(number, weight, capacity);
    if (excluded) {
      return excluded;
    }
    const isDuplicate = this.#weights.has(number) && !(mayBeEqual && this.#weights.get(number) === weight);
    return isDuplicate ? { text: "which another grant has", at: Infinity } : undefined;
  }

  /** Undefined: each grant with a larger number leaves capacity for this one. */
  excludedProblemOf(number: bigint, weight: number, capacity: number): NumberProblem | undefined {
    for (const [otherWeight, other] of this.#largestByWeight) {
      if (otherWeight + weight > capacity && number < other.number) {
        return { text: `reported after ${other.number}, which leaves no capacity for it`, at: other.at };
      }
    }
    return undefined;
  }

  largestBefore(since: number): ReportedNumber {
    return this.#largest.findLast(({ at }) => at < since) ?? none;
  }

  /** The largest number that was reported; undefined: none was. */
  get largest(): ReportedNumber | undefined {
    return this.#largest.at(-1);
  }

  /** A caller learns of the number now. */
  reported(number: bigint, weight: number, at: number): void {
    if (number > (this.largest?.number ?? 0n)) {
      this.#largest.push({ at, number });
    }
    if (number > (this.#largestByWeight.get(weight)?.number ?? 0n)) {
      this.#largestByWeight.set(weight, { at, number });
    }
    this.#weights.set(number, weight);
  }
}
