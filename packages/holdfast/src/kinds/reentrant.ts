import type { Contention } from "../local/coordinator.ts";
import { WaitTimeoutError } from "../errors.ts";
import type { Frames } from "./lock-scope.ts";
import type { OwnedLease } from "../lease/lease.ts";
import type { Way } from "./lockable.ts";
import { checkText, type AcquireOptions, type ResolvedAcquire } from "../options.ts";
import { Joint } from "./joint-acquire.ts";
import type { Mutexes } from "./mutex.ts";
import { Nest, NestedLease } from "./reentrant-hold.ts";
import { Turns } from "./async-mutex.ts";

export interface ReentrantOptions extends AcquireOptions {
  /**
   * Who asks, for work that is not one call tree: acquires of one session are nested whatever called them.
   * @defaultValue the innermost `withLock` of this `Locks` instance around the call; outside of any, each acquire is by itself
   */
  session?: string | undefined;
}

export interface ResolvedReentrant extends ResolvedAcquire {
  readonly session: string | undefined;
}

/**
 * Locks that their holder may acquire again: the server sees one mutex, the count lives in this process. Options that outlive
 * the grant are those of the outermost acquire.
 */
export class Reentrants {
  readonly #contention: Contention;
  readonly #frames: Frames;
  readonly #mutexes: Mutexes;
  readonly #sessions: Joint<ReentrantLease>;

  constructor(contention: Contention, frames: Frames, mutexes: Mutexes) {
    this.#contention = contention;
    this.#frames = frames;
    this.#mutexes = mutexes;
    this.#sessions = new Joint(contention, (nest) => new ReentrantLease(nest));
  }

  way(key: string, defaults: ResolvedReentrant): Way<ReentrantOptions, ResolvedReentrant, ReentrantLease> {
    return {
      resolve: (options) => this.resolve(options, defaults),
      resolveTry: ({ session, ...options } = {}) =>
        withSession(this.#mutexes.resolveTry(options, defaults), session, defaults.session),
      acquire: async (options, isForWork) => {
        const lease = await this.#enter(key, options, isForWork);
        if (!lease) {
          throw new WaitTimeoutError(key, options.waitMs, this.#contention.holderOf(key)?.describe());
        }
        return lease;
      },
      try: (options, isForWork) => this.#enter(key, { ...options, waitMs: 0 }, isForWork, true),
    };
  }

  resolve(
    { session, ...options }: ReentrantOptions = {},
    defaults: ResolvedAcquire & { readonly session?: string | undefined },
  ): ResolvedReentrant {
    return withSession(this.#mutexes.resolve(options, defaults), session, defaults.session);
  }

  /** Undefined: others of this process have it, of whom the caller has to wait for one. */
  async #enter(
    key: string,
    options: ResolvedReentrant,
    isForWork: boolean,
    isTry = false,
  ): Promise<ReentrantLease | null> {
    this.#contention.refuseClosed(key);
    options.signal?.throwIfAborted();
    const around = this.#frames.find(
      (lease) => lease instanceof ReentrantLease && lease.key === key && !lease.isOver,
    ) as ReentrantLease | undefined;
    const name = options.session === undefined ? undefined : JSON.stringify([key, options.session]);
    if (around && (name === undefined || name === around.nest.name)) {
      return around.enter(options, isForWork);
    }
    const begin = ({ waitMs }: { readonly waitMs: number }): Promise<OwnedLease | null> =>
      isTry ? this.#mutexes.try(key, options) : this.#mutexes.acquire(key, { ...options, waitMs });
    if (name !== undefined) {
      this.#frames.refuseWithin(key);
      return this.#sessions.acquire(name, options, begin); // one asks the engine; the others wait for its answer
    }
    const base = await begin(options);
    return base && new ReentrantLease(new Nest(this.#contention, base));
  }
}

/** A lease that shares its base with those around it. */
export class ReentrantLease extends NestedLease {
  readonly #turns: Turns;
  readonly #left: (() => void) | undefined;

  constructor(nest: Nest, left?: () => void) {
    super(nest);
    this.#turns = new Turns(nest.contention);
    this.#left = left;
  }

  /**
   * A lease inside this one's `withLock`. Of the branches of that work one at a time has a `withLock` of its own; the others wait for
   * that one, and not for us. Null: not within `waitMs`.
   */
  async enter(options: ResolvedAcquire, isForWork: boolean): Promise<ReentrantLease | null> {
    if (!(await this.#turns.take(options))) {
      return null;
    }
    const give = (): void => this.#turns.give();
    try {
      this.throwIfLost();
    } catch (error) {
      give();
      throw error;
    }
    if (!isForWork) {
      give();
    }
    return new ReentrantLease(this.nest, isForWork ? give : undefined);
  }

  override release(): Promise<boolean> {
    const isFirst = !this.isOver;
    const released = super.release();
    if (isFirst) {
      this.#left?.();
    }
    return released;
  }
}

function withSession(
  options: ResolvedAcquire,
  session: string | undefined,
  fallback: string | undefined,
): ResolvedReentrant {
  return { ...options, session: session === undefined ? fallback : checkText("session", session, 512) };
}
