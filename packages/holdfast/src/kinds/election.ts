import { LockError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import type { Lease } from "../lease/lease.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { Holder, LockEvent, LockState } from "../lock-state.ts";
import type { MutexFactory } from "./mutex.ts";

/** Who of many candidates leads: the holder of a key, for as long as it lives and does not resign. */
export interface Election {
  /**
   * Waits until we lead; without a bound unless `waitMs` is given. The term is a lease: its `signal` aborts at the loss of
   * leadership, its `fencingToken` is larger than that of every earlier leader. It lasts until it is released or lost.
   * @throws {LockError} `self-deadlock` where this candidate leads already
   */
  campaign(options?: AcquireOptions): Promise<Lease>;
  /** Ends our term; the next candidate leads at once. @returns whether we led */
  resign(): Promise<boolean>;
  leader(): Promise<Holder | null>;
  /** The leader now, then every change; null: there is none. Ends with the signal. */
  observe(options?: { signal?: AbortSignal | undefined }): AsyncIterable<Holder | null>;
}

/** What an election needs to see. */
interface InspectHost {
  inspect(key: string): Promise<LockState>;
  watch(key: string, options?: { signal?: AbortSignal | undefined }): AsyncIterable<LockEvent>;
}

export class MutexElection implements Election {
  readonly #key: string;
  readonly #defaults: ResolvedAcquire;
  readonly #mutexes: MutexFactory;
  readonly #views: InspectHost;
  #term: LeaseHandle | undefined;

  constructor(key: string, defaults: ResolvedAcquire, mutexes: MutexFactory, views: InspectHost) {
    this.#key = key;
    this.#defaults = defaults;
    this.#mutexes = mutexes;
    this.#views = views;
  }

  campaign(options?: AcquireOptions): Promise<Lease> {
    return this.#campaign(this.#mutexes.resolve(options, this.#defaults));
  }

  async resign(): Promise<boolean> {
    const term = this.#term;
    this.#term = undefined;
    const leads = term !== undefined && term.remainingMs() > 0;
    const wasOurs = await term?.release();
    return leads && wasOurs === true;
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
      const message = `This candidate leads "${this.#key}" already, and would wait for itself`;
      throw new LockError(message, { code: "self-deadlock", key: this.#key });
    }
    const term = await this.#mutexes.acquireAlone(this.#key, options);
    this.#term = term;
    return term;
  }
}

function leaderIn({ holders }: LockState): Holder | null {
  return holders[0] ?? null;
}
