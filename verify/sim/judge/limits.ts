/** The limits that a semaphore has had, and since when. */
export class Limits {
  readonly #knownLimits: Set<number>;
  readonly #times: { readonly since: number; readonly limit: number }[];
  readonly #changes: LimitChange[] = [];
  /** The limit that callers name: the last one that an operator requested. */
  requestedLimit: number;

  constructor(first: number) {
    this.#knownLimits = new Set([first]);
    this.#times = [{ since: 0, limit: first }];
    this.requestedLimit = first;
  }

  get now(): number {
    return (this.#times.at(-1) as { limit: number }).limit;
  }

  /** Whether a second limit was ever requested or named. Then a caller may name an earlier or a later limit. */
  get hasChanged(): boolean {
    return this.#knownLimits.size > 1;
  }

  /** A caller names this limit. Without a holder and a waiter, the named limit is in force from then on. */
  used(limit: number): void {
    this.#knownLimits.add(limit);
  }

  /** An operator requests another limit. The engine may apply the limit at any time until the change has `until`. */
  requested(limit: number): LimitChange {
    const change = { limit, until: Infinity };
    this.#knownLimits.add(limit);
    this.requestedLimit = limit;
    this.#changes.push(change);
    return change;
  }

  /** The limit is in force from now on. @returns whether an operator requested the limit, or a caller named it */
  applied(since: number, limit: number): boolean {
    if (limit !== this.now) {
      this.#times.push({ since, limit });
    }
    return this.#knownLimits.has(limit);
  }

  /**
   * The limits that may have been in force at any time since then. One batch may change the limit twice, so a limit that an operator
   * requests may be in force between two looks at the server.
   */
  inForceSince(moment: number): readonly number[] {
    const first = this.#times.findLastIndex(({ since }) => since < moment);
    const changes = this.#changes.filter(({ until }) => until >= moment);
    return [...this.#times.slice(Math.max(0, first)), ...changes].map(({ limit }) => limit);
  }
}

/** An operator's request for a limit: `until` is when its reply came, in ms of the schedule. */
export interface LimitChange {
  readonly limit: number;
  until: number;
}
