/** A grant that is handed on inside its process, each time with the next number. */
export interface GrantRun {
  readonly client: number;
  readonly first: bigint;
  last: bigint;
  /** An operator ends it: that it is over may be told late. */
  isBroken: boolean;
  /** It was granted then or later: its first owner asked for it. */
  readonly since: number;
}

/** How many numbers a grant has for those it is handed on to. */
const maxNumbersPerGrant = 17n;

/** The grants of one key by their numbers: which belong together, and which an operator has ended. */
export class GrantRuns {
  /** Of those who share the key: each run by its last number. */
  readonly #shared = new Map<bigint, GrantRun>();
  #newest: GrantRun = { client: -1, first: 0n, last: 0n, isBroken: false, since: 0 };
  /** Since when each number may have been granted. */
  readonly #granted = new Map<bigint, number>();
  /** The numbers that operators have named. */
  readonly #broken: bigint[] = [];

  /** The grant that is handed on in its process with this number: of a mutex it is the newest one. Undefined: there is none. */
  precedingRun(client: number, fencingToken: bigint, isShared: boolean): GrantRun | undefined {
    const run = isShared ? this.#shared.get(fencingToken - 1n) : this.#newest;
    return run?.client === client && fencingToken === run.last + 1n ? run : undefined;
  }

  isBroken(fencingToken: bigint, isShared: boolean): boolean {
    return this.#broken.some((broken) =>
      isShared
        ? fencingToken === broken
        : fencingToken >= broken && fencingToken < broken + maxNumbersPerGrant,
    );
  }

  /** Whether a caller has been told of a lease with this number. */
  wasGranted(number: bigint): boolean {
    return this.#granted.has(number);
  }

  /** What is wrong with the number of a grant that nobody shares. */
  problemOf(fencingToken: bigint): string | undefined {
    return fencingToken <= this.#newest.last ? ` after ${this.#newest.last}` : undefined;
  }

  granted(
    client: number,
    fencingToken: bigint,
    grant: {
      readonly preceding: GrantRun | undefined;
      readonly isShared: boolean;
      readonly isBroken: boolean;
      readonly since: number;
    },
  ): GrantRun {
    const since = this.#granted.get(fencingToken) ?? grant.since;
    this.#granted.set(fencingToken, since);
    const own = { client, first: fencingToken, last: fencingToken, isBroken: grant.isBroken, since };
    if (grant.isShared) {
      const run = grant.preceding ?? own;
      this.#shared.delete(run.last);
      run.last = fencingToken;
      this.#shared.set(fencingToken, run);
      return run;
    } else if (grant.preceding) {
      this.#newest.last = fencingToken;
    } else if (fencingToken > this.#newest.last) {
      this.#newest = own;
    }
    return this.#newest.first <= fencingToken ? this.#newest : own;
  }

  /** That with this number, which somebody else has now, or has as something else. */
  runOf(client: number, fencingToken: bigint): GrantRun {
    return this.#newest.first <= fencingToken && this.#newest.client >= 0
      ? this.#newest
      : {
          client,
          first: fencingToken,
          last: fencingToken,
          isBroken: this.isBroken(fencingToken, true),
          since: this.#granted.get(fencingToken) ?? 0,
        };
  }

  /**
   * An operator ends the grant with that number. Where nobody has that, it is another one of that client's grant: nodes of a quorum may
   * have different ones for it, and who reached only some of them was told of theirs.
   * @param current those that are in force
   */
  breaks(fencingToken: bigint, client: number, current: readonly GrantRun[], isShared: boolean): void {
    this.#broken.push(fencingToken);
    const known = [this.#newest, ...current];
    const named = known.filter(({ first, last }) =>
      isShared
        ? fencingToken >= first && fencingToken <= last
        : fencingToken >= first && fencingToken < first + maxNumbersPerGrant,
    );
    const meant = named.length > 0 ? named : current.filter((run) => run.client === client);
    for (const run of meant) {
      run.isBroken = true;
    }
  }
}
