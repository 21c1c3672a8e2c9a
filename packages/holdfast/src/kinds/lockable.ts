import type { Clock } from "../runtime/clock.ts";
import { LeaseLostError } from "../errors.ts";
import type { LockScope } from "./lock-scope.ts";
import type { Lease, InternalLease } from "../lease/lease.ts";
import { invalidValue } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";

/** The answer of a `tryWithLock`: the value of the work, or that it did not run as another held the lock. */
export type WithLockResult<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

export type LockedCallback<T, L extends Lease = Lease> = (lease: L) => T | Promise<T>;

/** What every kind of lock offers. See `Locks` for what the calls guarantee. */
export interface Lockable<O = AcquireOptions, L extends Lease = Lease> {
  tryAcquire(options?: Omit<O, "waitMs">): Promise<L | null>;
  acquire(options?: O): Promise<L>;
  withLock<T>(work: LockedCallback<T, L>): Promise<T>;
  withLock<T>(options: O, work: LockedCallback<T, L>): Promise<T>;
  tryWithLock<T>(work: LockedCallback<T, L>): Promise<WithLockResult<T>>;
  tryWithLock<T>(options: Omit<O, "waitMs">, work: LockedCallback<T, L>): Promise<WithLockResult<T>>;
}

/** How one kind of lock is asked for, with its key and defaults in it. */
export interface AcquireStrategy<O, R extends ResolvedAcquire, L extends InternalLease> {
  /** Checks options. @throws {TypeError | RangeError} */
  resolve(options: O | undefined): R;
  resolveTry(options: Omit<O, "waitMs"> | undefined): R;
  /** @param isForWithLock whether a `withLock` asks, which releases by itself and whose work knows where it runs */
  acquire(options: R, isForWithLock: boolean): Promise<L>;
  try(options: R, isForWithLock: boolean): Promise<L | null>;
}

/** The calls of a kind of lock, made of the way to ask for it. */
export function lockable<O, R extends ResolvedAcquire, L extends InternalLease>(
  strategy: AcquireStrategy<O, R, L>,
  runner: LockRunner,
): Lockable<O, L> {
  return {
    tryAcquire: (options) => strategy.try(strategy.resolveTry(options), false),
    acquire: (options) => strategy.acquire(strategy.resolve(options), false),
    withLock: <T>(...args: [LockedCallback<T, L>] | [O, LockedCallback<T, L>]): Promise<T> => {
      const [options, work] = splitWork(args);
      const resolved = strategy.resolve(options);
      return strategy.acquire(resolved, true).then((lease) => runner.run(lease, resolved, work));
    },
    tryWithLock: <T>(
      ...args: [LockedCallback<T, L>] | [Omit<O, "waitMs">, LockedCallback<T, L>]
    ): Promise<WithLockResult<T>> => {
      const [options, work] = splitWork(args);
      const resolved = strategy.resolveTry(options);
      return strategy
        .try(resolved, true)
        .then(async (lease): Promise<WithLockResult<T>> =>
          lease ? { ran: true, value: await runner.run(lease, resolved, work) } : { ran: false },
        );
    },
  };
}

/** Runs work under a lease. */
export class LockRunner {
  readonly #scope: LockScope;
  readonly #clock: Clock;

  constructor(scope: LockScope, clock: Clock) {
    this.#scope = scope;
    this.#clock = clock;
  }

  /**
   * Releases in every case. The work's error wins. Work that ended well is told of a loss, and never fails for a release
   * that takes longer.
   */
  async run<T, L extends InternalLease>(
    lease: L,
    options: ResolvedAcquire,
    work: LockedCallback<T, L>,
  ): Promise<T> {
    let value: T;
    try {
      value = await this.#scope.run(lease, () => work(lease));
    } catch (error) {
      await lease.release().catch(() => false);
      throw error;
    }
    const lossBefore = lease.currentLoss();
    const wasHeld = await lease.release().catch(() => true);
    const loss = lossBefore ?? (wasHeld || lease.isTransferred ? undefined : "stolen");
    if (loss && options.ifLost === "abort") {
      throw new LeaseLostError(lease.key, loss, this.#clock.wall(), { result: value });
    }
    return value;
  }
}

function splitWork<O, W>(args: readonly [W] | readonly [O, W]): [O | undefined, W] {
  const [options, work] = args.length === 1 ? [undefined, args[0]] : args;
  if (typeof work !== "function") {
    throw invalidValue("work", "a function", work);
  }
  return [options, work];
}
