/** A grant that is handed on inside its process, each time with the next number. */
export interface Run {
  readonly client: number;
  readonly first: bigint;
  last: bigint;
  /** An operator ends it: that it is over may be told late. */
  isBroken: boolean;
  /** It was granted then or later: its first owner asked for it. */
  readonly since: number;
}

/** How many numbers a grant has for those it is handed on to. */
const mostNumbers = 17n;

/** The grants of one key by their numbers: which belong together, and which an operator has ended. */
export class Runs {
  /** Of those who share the key: each run by its last number. */
  readonly #shared = new Map<bigint, Run>();
  #newest: Run = { client: -1, first: 0n, last: 0n, isBroken: false, since: 0 };
  /** Since when each number may have been granted. */
  readonly #granted = new Map<bigint, number>();
  /** The numbers that operators have named. */
  readonly #broken: bigint[] = [];

  /** The grant that is handed on in its process with this number: of a mutex it is the newest one. Undefined: there is none. */
  handedOn(client: number, number: bigint, isShared: boolean): Run | undefined {
    const run = isShared ? this.#shared.get(number - 1n) : this.#newest;
    return run?.client === client && number === run.last + 1n ? run : undefined;
  }

  isBroken(number: bigint, isShared: boolean): boolean {
    return this.#broken.some((broken) =>
      isShared ? number === broken : number >= broken && number < broken + mostNumbers,
    );
  }

  /** What is wrong with the number of a grant that nobody shares. */
  wrong(number: bigint): string | undefined {
    return number <= this.#newest.last ? `after ${this.#newest.last}` : undefined;
  }

  granted(
    client: number,
    number: bigint,
    about: {
      readonly handedOn: Run | undefined;
      readonly isShared: boolean;
      readonly isBroken: boolean;
      readonly since: number;
    },
  ): Run {
    const since = this.#granted.get(number) ?? about.since;
    this.#granted.set(number, since);
    const own = { client, first: number, last: number, isBroken: about.isBroken, since };
    if (about.isShared) {
      const run = about.handedOn ?? own;
      this.#shared.delete(run.last);
      run.last = number;
      this.#shared.set(number, run);
      return run;
    } else if (about.handedOn) {
      this.#newest.last = number;
    } else if (number > this.#newest.last) {
      this.#newest = own;
    }
    return this.#newest.first <= number ? this.#newest : own;
  }

  /** That with this number, which somebody else has now, or has as something else. */
  of(client: number, number: bigint): Run {
    return this.#newest.first <= number && this.#newest.client >= 0
      ? this.#newest
      : {
          client,
          first: number,
          last: number,
          isBroken: this.isBroken(number, true),
          since: this.#granted.get(number) ?? 0,
        };
  }

  /**
   * An operator ends the grant with that number. Where nobody has that, it is another one of that client's grant: nodes of a quorum may
   * have different ones for it, and who reached only some of them was told of theirs.
   * @param held those that are in force
   */
  breaks(number: bigint, client: number, held: readonly Run[], isShared: boolean): void {
    this.#broken.push(number);
    const known = [this.#newest, ...held];
    const named = known.filter(({ first, last }) =>
      isShared ? number >= first && number <= last : number >= first && number < first + mostNumbers,
    );
    const meant = named.length > 0 ? named : held.filter((run) => run.client === client);
    for (const run of meant) {
      run.isBroken = true;
    }
  }
}
