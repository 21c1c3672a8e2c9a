/** A grant that is handed over inside its process, each time with the next number. */
export interface GrantRun {
  readonly client: number;
  /** The key may have further holders, each with a grant of its own. */
  readonly isShared: boolean;
  readonly first: bigint;
  last: bigint;
  /** An operator has broken the grant. Its holder may learn of the break late. */
  isBroken: boolean;
  /** When the first owner requested the grant. The engine granted it then or later. */
  readonly since: number;
}

/** How many numbers a grant reserves: for its first owner, and for hand-overs. */
const maxNumbersPerGrant = 17n;

/** The grants of one key by number: which leases were handed over on one grant, and which grants an operator has broken. */
export class GrantRuns {
  /** The runs of holders that share the key, by last number. */
  readonly #shared = new Map<bigint, GrantRun>();
  #newest: GrantRun = { client: -1, isShared: false, first: 0n, last: 0n, isBroken: false, since: 0 };
  /** When the grant with each number was requested. */
  readonly #granted = new Map<bigint, number>();
  /** The numbers that operators have named in a break. */
  readonly #broken: bigint[] = [];

  /** The grant whose hand-over has this number. Of a mutex only the newest grant. Undefined: there is none. */
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

  /** Whether a caller has got a lease with this number. */
  wasGranted(number: bigint): boolean {
    return this.#granted.has(number);
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
    const { isShared, isBroken } = grant;
    const own = { client, isShared, first: fencingToken, last: fencingToken, isBroken, since };
    if (isShared) {
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

  /** The run of a known number, after an adoption or a downgrade. */
  runOf(client: number, fencingToken: bigint): GrantRun {
    const { first, last } = this.#newest;
    return first <= fencingToken && fencingToken <= last
      ? this.#newest
      : {
          client,
          isShared: true,
          first: fencingToken,
          last: fencingToken,
          isBroken: this.isBroken(fencingToken, true),
          since: this.#granted.get(fencingToken) ?? 0,
        };
  }

  /**
   * An operator breaks the grant with that number. If no grant has the number, the number belongs to another grant of that client. Nodes
   * of a quorum may store different numbers for one grant, and the operator may have reached only some nodes.
   * @param current the runs with a present lease
   */
  breaks(fencingToken: bigint, client: number, current: readonly GrantRun[], isShared: boolean): void {
    this.#broken.push(fencingToken);
    const known = [this.#newest, ...current];
    const named = known.filter(({ first, last }) =>
      isShared
        ? fencingToken >= first && fencingToken <= last
        : fencingToken >= first && fencingToken < first + maxNumbersPerGrant,
    );
    const broken = named.length > 0 ? named : current.filter((run) => run.client === client);
    for (const run of broken) {
      run.isBroken = true;
    }
  }
}
