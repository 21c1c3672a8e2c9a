import { isLockError, LeaseLostError, LockError } from "../errors.ts";
import type { Holder } from "../lock-state.ts";
import type { InternalLease, Lease } from "../lease/lease.ts";
import { asyncStorage } from "../runtime/async-storage.ts";
import type { Clock } from "../runtime/clock.ts";
import { invalidValue } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";

interface Scope {
  /** The instance that entered this scope. */
  readonly owner: LockScope;
  readonly lease: InternalLease;
  readonly outer: Scope | undefined;
}

/** One storage for all instances, because Node 20 calls every storage ever used at each promise. */
const storage = asyncStorage<Scope>();

/** Records the `withLock` calls around a call, so that a self-deadlock is rejected at once. */
export class LockScope {
  run<T>(lease: InternalLease, work: () => T): T {
    return storage.run({ owner: this, lease, outer: storage.getStore() }, work);
  }

  /** The lease of the innermost `withLock` around this call that matches. */
  find(matches: (lease: InternalLease) => boolean): InternalLease | undefined {
    for (let scope = storage.getStore(); scope; scope = scope.outer) {
      if (scope.owner === this && matches(scope.lease)) {
        return scope.lease;
      }
    }
    return undefined;
  }

  /** @throws {LockError} `self-deadlock` inside a `withLock` that still holds the key */
  assertNotWithin(key: string): void {
    if (this.find((lease) => lease.keys.includes(key) && lease.isInForce)) {
      const message = `"${key}" is held by the \`withLock\` around this call, so this call would wait for itself`;
      throw new LockError(message, { code: "self-deadlock", key });
    }
  }
}

/** The result of `tryWithLock` and `once`: the value of the callback, or `ran: false` and the holder, if known. */
export type WithLockResult<T> =
  { readonly ran: true; readonly value: T } | { readonly ran: false; readonly holder: Holder | undefined };

/** The answer to a try: the lease, or the holder, if known. */
export type Tried<L> = { readonly lease: L } | { readonly holder: Holder | undefined };

export function leaseOrNull<L>(tried: Tried<L>): L | null {
  return "lease" in tried ? tried.lease : null;
}

/** A callback that runs while its lease is held. */
export type LockedCallback<T, L extends Lease = Lease> = (lease: L) => T | Promise<T>;

/** The calls of every kind of lock. `Locks` documents their guarantees. */
export interface Lockable<O = AcquireOptions, L extends Lease = Lease> {
  /** Tries once. @returns null only if another holder has the lock */
  tryAcquire(options?: Omit<O, "waitMs">): Promise<L | null>;
  /** Waits for the lock. @throws {WaitTimeoutError} `waitMs` has passed, and the lock is still held */
  acquire(options?: O): Promise<L>;
  /** Runs `work` under the lock. @throws {LeaseLostError} the lease was lost before `work` ended */
  withLock<T>(work: LockedCallback<T, L>): Promise<T>;
  withLock<T>(options: O, work: LockedCallback<T, L>): Promise<T>;
  /** Runs `work` if the lock is free, without waiting. */
  tryWithLock<T>(work: LockedCallback<T, L>): Promise<WithLockResult<T>>;
  tryWithLock<T>(options: Omit<O, "waitMs">, work: LockedCallback<T, L>): Promise<WithLockResult<T>>;
}

/** How one lock is acquired. The key and the defaults are bound. */
export interface AcquireStrategy<O, R extends ResolvedAcquire, L extends InternalLease> {
  /** Validates options. @throws {TypeError | RangeError} */
  resolve(options: O | undefined): R;
  resolveTry(options: Omit<O, "waitMs"> | undefined): R;
  /** @param isForWithLock whether the caller is a `withLock`, which releases the lease and runs its callback in a scope */
  acquire(options: R, isForWithLock: boolean): Promise<L>;
  try(options: R, isForWithLock: boolean): Promise<Tried<L>>;
}

/** Builds the calls of a lock from its strategy. */
export function lockable<O, R extends ResolvedAcquire, L extends InternalLease>(
  strategy: AcquireStrategy<O, R, L>,
  runner: LockRunner,
): Lockable<O, L> {
  return {
    tryAcquire: (options) => strategy.try(strategy.resolveTry(options), false).then(leaseOrNull),
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
        .then(async (tried): Promise<WithLockResult<T>> =>
          "lease" in tried
            ? { ran: true, value: await runner.run(tried.lease, resolved, work) }
            : { ran: false, holder: tried.holder },
        );
    },
  };
}

/** Runs callbacks under a lease. */
export class LockRunner {
  readonly #scope: LockScope;
  readonly #clock: Clock;

  constructor(scope: LockScope, clock: Clock) {
    this.#scope = scope;
    this.#clock = clock;
  }

  /**
   * Always releases the lease. If `work` throws, its error is rethrown, or the loss that aborted the work. After a loss the call rejects.
   * A release that fails or takes long does not make the call reject.
   * @param end ends the hold after the work. @returns whether the lease held the lock until then
   */
  async run<T, L extends InternalLease>(
    lease: L,
    options: ResolvedAcquire,
    work: LockedCallback<T, L>,
    end: () => Promise<boolean> = () => lease.release(),
  ): Promise<T> {
    let value: T;
    try {
      value = await this.#scope.run(lease, () => work(lease));
    } catch (error) {
      await lease.release().catch(() => false);
      throw causedBy(lease.signal, error) ? lease.signal.reason : error;
    }
    const lossBefore = lease.currentLoss();
    const wasHeld = await end().catch(() => true);
    const loss = lossBefore ?? (wasHeld || lease.isTransferred ? undefined : "stolen");
    if (loss && options.ifLost === "abort") {
      const { cause } = (lossBefore === undefined ? {} : (lease.signal.reason ?? {})) as { cause?: unknown };
      throw new LeaseLostError(lease.key, loss, this.#clock.wall(), { cause, result: value });
    }
    return value;
  }
}

/** Whether the loss of the lease aborted the work. The `AbortError` of Node's functions has the reason of their signal as its cause. */
function causedBy({ reason }: AbortSignal, error: unknown): boolean {
  return isLockError(reason, "lease-lost") && error instanceof Error && error.cause === reason;
}

function splitWork<O, W>(args: readonly [W] | readonly [O, W]): [O | undefined, W] {
  const [options, work] = args.length === 1 ? [undefined, args[0]] : args;
  checkWork(work);
  return [options, work];
}

/** @throws {TypeError} */
export function checkWork(work: unknown): void {
  if (typeof work !== "function") {
    throw invalidValue("work", "a function", work);
  }
}
