import { LockError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-state.ts";
import type { Lease } from "../lease/lease.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { Holder, LockEvent, LockState } from "../lock-state.ts";
import { inspectAsJson } from "../runtime/plain-values.ts";
import type { KeyAcquirer } from "./key-acquirer.ts";

/** A leader election: the leader is the holder of the key, until it resigns or loses its lease. */
export interface Election {
  /**
   * Waits until this candidate leads, without a bound unless `waitMs` is given. The term is a lease, and lasts until its release or loss.
   * Its `signal` aborts at the loss of leadership. Its `fencingToken` is larger than the fencing tokens of all earlier leaders.
   * @throws {LockError} `self-deadlock`: this candidate already leads
   * @throws {WaitTimeoutError} `waitMs` has passed, and another candidate leads
   */
  campaign(options?: AcquireOptions): Promise<Lease>;
  /** Ends the term, so that the next candidate leads at once. @returns whether this candidate led */
  resign(): Promise<boolean>;
  /** The present leader; null: none. */
  leader(): Promise<Holder | null>;
  /** Yields the present leader, then every change, until the signal aborts; null: no leader. */
  observe(options?: { signal?: AbortSignal | undefined }): AsyncIterable<Holder | null>;
}

/** The views of a lock that an election uses. */
interface InspectHost {
  inspect(key: string): Promise<LockState>;
  watch(key: string, options?: { signal?: AbortSignal | undefined }): AsyncIterable<LockEvent>;
}

export class MutexElection implements Election {
  static {
    inspectAsJson(this.prototype, "Election");
  }

  readonly #key: string;
  readonly #defaults: ResolvedAcquire;
  readonly #acquirer: KeyAcquirer;
  readonly #views: InspectHost;
  #term: LeaseHandle | undefined;

  constructor(key: string, defaults: ResolvedAcquire, acquirer: KeyAcquirer, views: InspectHost) {
    this.#key = key;
    this.#defaults = defaults;
    this.#acquirer = acquirer;
    this.#views = views;
  }

  campaign(options?: AcquireOptions): Promise<Lease> {
    return this.#campaign(this.#acquirer.resolve(options, this.#defaults));
  }

  async resign(): Promise<boolean> {
    const term = this.#term;
    this.#term = undefined;
    const leads = term !== undefined && term.remainingMs() > 0;
    const wasOurs = await term?.release();
    return leads && wasOurs === true;
  }

  toJSON(): { key: string; leads: boolean } {
    return { key: this.#key, leads: this.#term !== undefined && this.#term.remainingMs() > 0 };
  }

  async leader(): Promise<Holder | null> {
    return leaderIn(await this.#views.inspect(this.#key));
  }

  async *observe(options?: { signal?: AbortSignal | undefined }): AsyncIterable<Holder | null> {
    let last: Holder | null | undefined;
    for await (const { state } of this.#views.watch(this.#key, options)) {
      const leader = leaderIn(state);
      if (
        last === undefined ||
        leader?.fencingToken !== last?.fencingToken ||
        leader?.owner !== last?.owner
      ) {
        last = leader;
        yield leader;
      }
    }
  }

  async #campaign(options: ResolvedAcquire): Promise<Lease> {
    if (this.#term && this.#term.remainingMs() > 0) {
      const message = `This candidate already leads "${this.#key}", so this call would wait for itself`;
      throw new LockError(message, { code: "self-deadlock", key: this.#key });
    }
    const term = await this.#acquirer.acquireUnshared(this.#key, options);
    this.#term = term;
    return term;
  }
}

function leaderIn({ holders }: LockState): Holder | null {
  return holders[0] ?? null;
}
