import type { LocalCoordinator } from "../local/coordinator.ts";
import { WaitTimeoutError } from "../errors.ts";
import type { LockScope } from "./lock-scope.ts";
import type { InternalLease } from "../lease/lease.ts";
import type { AcquireStrategy } from "./lockable.ts";
import { checkText } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import { SharedAcquire } from "./joint-acquire.ts";
import type { MutexFactory } from "./mutex.ts";
import { ReentrantHold, NestedLease } from "./reentrant-hold.ts";
import { AsyncMutex } from "./async-mutex.ts";

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
export class ReentrantFactory {
  readonly #coordinator: LocalCoordinator;
  readonly #scope: LockScope;
  readonly #mutexes: MutexFactory;
  readonly #sessions: SharedAcquire<ReentrantLease>;

  constructor(coordinator: LocalCoordinator, scope: LockScope, mutexes: MutexFactory) {
    this.#coordinator = coordinator;
    this.#scope = scope;
    this.#mutexes = mutexes;
    this.#sessions = new SharedAcquire(coordinator, (hold) => new ReentrantLease(hold));
  }

  strategy(
    key: string,
    defaults: ResolvedReentrant,
  ): AcquireStrategy<ReentrantOptions, ResolvedReentrant, ReentrantLease> {
    return {
      resolve: (options) => this.resolve(options, defaults),
      resolveTry: ({ session, ...options } = {}) =>
        withSession(this.#mutexes.resolveTry(options, defaults), session, defaults.session),
      acquire: async (options, isForWithLock) => {
        const lease = await this.#enter(key, options, isForWithLock);
        if (!lease) {
          throw new WaitTimeoutError(key, options.waitMs, this.#coordinator.holderOf(key)?.describe());
        }
        return lease;
      },
      try: (options, isForWithLock) => this.#enter(key, { ...options, waitMs: 0 }, isForWithLock, true),
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
    isForWithLock: boolean,
    isTry = false,
  ): Promise<ReentrantLease | null> {
    this.#coordinator.assertOpen(key);
    options.signal?.throwIfAborted();
    const outer = this.#scope.find(
      (lease) => lease instanceof ReentrantLease && lease.key === key && !lease.isEnded,
    ) as ReentrantLease | undefined;
    const name = options.session === undefined ? undefined : JSON.stringify([key, options.session]);
    if (outer && (name === undefined || name === outer.hold.name)) {
      return outer.enter(options, isForWithLock);
    }
    const requestLease = ({ waitMs }: { readonly waitMs: number }): Promise<InternalLease | null> =>
      isTry ? this.#mutexes.try(key, options) : this.#mutexes.acquire(key, { ...options, waitMs });
    if (name !== undefined) {
      this.#scope.assertNotWithin(key);
      return this.#sessions.acquire(name, options, requestLease); // one asks the engine; the others wait for its answer
    }
    const base = await requestLease(options);
    return base && new ReentrantLease(new ReentrantHold(this.#coordinator, base));
  }
}

/** A lease that shares its base with those around it. */
export class ReentrantLease extends NestedLease {
  readonly #branches: AsyncMutex;
  readonly #onReleased: (() => void) | undefined;

  constructor(hold: ReentrantHold, onReleased?: () => void) {
    super(hold);
    this.#branches = new AsyncMutex(hold.coordinator);
    this.#onReleased = onReleased;
  }

  /**
   * A lease inside this one's `withLock`. Of the branches of that work one at a time has a `withLock` of its own; the others wait for
   * that one, and not for us. Null: not within `waitMs`.
   */
  async enter(options: ResolvedAcquire, isForWithLock: boolean): Promise<ReentrantLease | null> {
    if (!(await this.#branches.acquire(options))) {
      return null;
    }
    const leaveBranch = (): void => this.#branches.release();
    try {
      this.throwIfLost();
    } catch (error) {
      leaveBranch();
      throw error;
    }
    if (!isForWithLock) {
      leaveBranch();
    }
    return new ReentrantLease(this.hold, isForWithLock ? leaveBranch : undefined);
  }

  override release(): Promise<boolean> {
    const isFirst = !this.isEnded;
    const released = super.release();
    if (isFirst) {
      this.#onReleased?.();
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
