import type { LocalCoordinator } from "../local/coordinator.ts";
import { WaitTimeoutError } from "../errors.ts";
import { type InternalLease } from "../lease/lease.ts";
import { leaseOrNull, type AcquireStrategy, type LockScope } from "./lockable.ts";
import { checkText } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import { AttemptSharing, NestedLease, ReentrantHold } from "./attempt-sharing.ts";
import type { KeyAcquirer } from "./key-acquirer.ts";
import { AsyncMutex } from "./async-mutex.ts";

/** Options of a reentrant acquire. */
export interface ReentrantOptions extends AcquireOptions {
  /**
   * The name of the holder, at most 512 bytes. Acquires with the same session are nested, also in separate call trees.
   * @defaultValue the innermost `withLock` of this `Locks` around the call; without one, each acquire is a separate holder
   */
  session?: string | undefined;
}

interface ResolvedReentrant extends ResolvedAcquire {
  readonly session: string | undefined;
}

/**
 * Creates locks that their holder may acquire again. The engine has one mutex, and this process counts the leases.
 * The outermost acquire decides the TTL, renewal, `maxHoldMs` and metadata.
 */
export class ReentrantFactory {
  readonly #coordinator: LocalCoordinator;
  readonly #scope: LockScope;
  readonly #acquirer: KeyAcquirer;
  readonly #sessions: AttemptSharing<ReentrantLease>;

  constructor(coordinator: LocalCoordinator, scope: LockScope, acquirer: KeyAcquirer) {
    this.#coordinator = coordinator;
    this.#scope = scope;
    this.#acquirer = acquirer;
    this.#sessions = new AttemptSharing(coordinator, (hold) => new ReentrantLease(hold));
  }

  strategy(
    key: string,
    defaults: ResolvedReentrant,
  ): AcquireStrategy<ReentrantOptions, ResolvedReentrant, ReentrantLease> {
    return {
      resolve: (options) => this.resolve(options, defaults),
      resolveTry: ({ session, ...options } = {}) =>
        withSession(this.#acquirer.resolveTry(options, defaults), session, defaults.session),
      acquire: async (options, isForWithLock) => {
        const lease = await this.#enter(key, options, isForWithLock);
        if (!lease) {
          throw new WaitTimeoutError(key, options.waitMs, this.#coordinator.holderOf(key)?.describe());
        }
        return lease;
      },
      try: async (options, isForWithLock) => {
        const lease = await this.#enter(key, { ...options, waitMs: 0 }, isForWithLock, true);
        return lease ? { lease } : { holder: this.#coordinator.holderOf(key)?.describe() };
      },
    };
  }

  resolve(
    { session, ...options }: ReentrantOptions = {},
    defaults: ResolvedAcquire & { readonly session?: string | undefined },
  ): ResolvedReentrant {
    return withSession(this.#acquirer.resolve(options, defaults), session, defaults.session);
  }

  /** Joins the hold around this call or of its session, or acquires the mutex. Null: the lock is held, or `waitMs` has passed. */
  async #enter(
    key: string,
    options: ResolvedReentrant,
    isForWithLock: boolean,
    isTry = false,
  ): Promise<ReentrantLease | null> {
    this.#coordinator.checkKey(key);
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
      isTry
        ? this.#acquirer.try(key, options).then(leaseOrNull)
        : this.#acquirer.acquire(key, { ...options, waitMs });
    if (name !== undefined) {
      this.#scope.assertNotWithin(key);
      return this.#sessions.acquire(name, options, requestLease); // one caller requests the lock; the others wait for its result
    }
    const base = await requestLease(options);
    return base && new ReentrantLease(new ReentrantHold(this.#coordinator, base));
  }
}

/** A lease that shares its base with the leases around it. */
class ReentrantLease extends NestedLease {
  readonly #branches: AsyncMutex;
  readonly #onReleased: (() => void) | undefined;

  constructor(hold: ReentrantHold, onReleased?: () => void) {
    super(hold);
    this.#branches = new AsyncMutex(hold.coordinator);
    this.#onReleased = onReleased;
  }

  /**
   * Creates a lease inside this lease's `withLock`. Concurrent branches of that callback enter inner `withLock` calls one at a time, and
   * wait for each other for at most `waitMs`. Null: `waitMs` has passed.
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
