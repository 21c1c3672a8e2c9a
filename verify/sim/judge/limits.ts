/** How many permits a semaphore has had, and since when. */
export class Limits {
  readonly #knownLimits: Set<number>;
  readonly #times: { readonly since: number; readonly limit: number }[];
  /** What callers name: the last one that an operator asked for. */
  requestedLimit: number;

  constructor(first: number) {
    this.#knownLimits = new Set([first]);
    this.#times = [{ since: 0, limit: first }];
    this.requestedLimit = first;
  }

  get now(): number {
    return (this.#times.at(-1) as { limit: number }).limit;
  }

  /** Whether an operator has ever asked for another: then some may name what it was, or will be. */
  get hasChanged(): boolean {
    return this.#knownLimits.size > 1;
  }

  /** A caller names it: where nobody holds or waits, that is the limit from then on. */
  used(limit: number): void {
    this.#knownLimits.add(limit);
  }

  /** An operator asks for another. */
  requested(limit: number): void {
    this.#knownLimits.add(limit);
    this.requestedLimit = limit;
  }

  /** It is in force from now on. @returns whether anybody asked for it */
  applied(since: number, limit: number): boolean {
    if (limit !== this.now) {
      this.#times.push({ since, limit });
    }
    return this.#knownLimits.has(limit);
  }

  /** Those that were in force at any time since then. */
  inForceSince(moment: number): readonly number[] {
    const first = this.#times.findLastIndex(({ since }) => since < moment);
    return this.#times.slice(Math.max(0, first)).map(({ limit }) => limit);
  }
}
