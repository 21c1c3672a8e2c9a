import type { Clock } from "../runtime/clock.ts";
import { LeaseLostError } from "../errors.ts";
import type { Frames } from "./lock-scope.ts";
import type { Lease, OwnedLease } from "../lease/lease.ts";
import { refusal, type AcquireOptions, type ResolvedAcquire } from "../options.ts";

/** The answer of a `tryWithLock`: the value of the work, or that it did not run as another held the lock. */
export type Ran<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

export type Work<T, L extends Lease = Lease> = (lease: L) => T | Promise<T>;

/** What every kind of lock offers. See `Locks` for what the calls guarantee. */
export interface Lockable<O = AcquireOptions, L extends Lease = Lease> {
  tryAcquire(options?: Omit<O, "waitMs">): Promise<L | null>;
  acquire(options?: O): Promise<L>;
  withLock<T>(work: Work<T, L>): Promise<T>;
  withLock<T>(options: O, work: Work<T, L>): Promise<T>;
  tryWithLock<T>(work: Work<T, L>): Promise<Ran<T>>;
  tryWithLock<T>(options: Omit<O, "waitMs">, work: Work<T, L>): Promise<Ran<T>>;
}

/** How one kind of lock is asked for, with its key and defaults in it. */
export interface Way<O, R extends ResolvedAcquire, L extends OwnedLease> {
  /** Checks options. @throws {TypeError | RangeError} */
  resolve(options: O | undefined): R;
  resolveTry(options: Omit<O, "waitMs"> | undefined): R;
  /** @param isForWork whether a `withLock` asks, which releases by itself and whose work knows where it runs */
  acquire(options: R, isForWork: boolean): Promise<L>;
  try(options: R, isForWork: boolean): Promise<L | null>;
}

/** The calls of a kind of lock, made of the way to ask for it. */
export function lockable<O, R extends ResolvedAcquire, L extends OwnedLease>(
  way: Way<O, R, L>,
  runner: Runner,
): Lockable<O, L> {
  return {
    tryAcquire: (options) => way.try(way.resolveTry(options), false),
    acquire: (options) => way.acquire(way.resolve(options), false),
    withLock: <T>(...rest: [Work<T, L>] | [O, Work<T, L>]): Promise<T> => {
      const [options, work] = splitWork(rest);
      const resolved = way.resolve(options);
      return way.acquire(resolved, true).then((lease) => runner.run(lease, resolved, work));
    },
    tryWithLock: <T>(...rest: [Work<T, L>] | [Omit<O, "waitMs">, Work<T, L>]): Promise<Ran<T>> => {
      const [options, work] = splitWork(rest);
      const resolved = way.resolveTry(options);
      return way
        .try(resolved, true)
        .then(async (lease): Promise<Ran<T>> =>
          lease ? { ran: true, value: await runner.run(lease, resolved, work) } : { ran: false },
        );
    },
  };
}

/** Runs work under a lease. */
export class Runner {
  readonly #frames: Frames;
  readonly #clock: Clock;

  constructor(frames: Frames, clock: Clock) {
    this.#frames = frames;
    this.#clock = clock;
  }

  /**
   * Releases in every case. The work's error wins. Work that ended well is told of a loss, and never fails for a release
   * that takes longer.
   */
  async run<T, L extends OwnedLease>(lease: L, options: ResolvedAcquire, work: Work<T, L>): Promise<T> {
    let value: T;
    try {
      value = await this.#frames.run(lease, () => work(lease));
    } catch (error) {
      await lease.release().catch(() => false);
      throw error;
    }
    const lossBefore = lease.lossNow();
    const wasOurs = await lease.release().catch(() => true);
    const loss = lossBefore ?? (wasOurs || lease.wasTransferred ? undefined : "stolen");
    if (loss && options.ifLost === "abort") {
      throw new LeaseLostError(lease.key, loss, this.#clock.wall(), { result: value });
    }
    return value;
  }
}

function splitWork<O, W>(rest: readonly [W] | readonly [O, W]): [O | undefined, W] {
  const [options, work] = rest.length === 1 ? [undefined, rest[0]] : rest;
  if (typeof work !== "function") {
    throw refusal("work", "a function", work);
  }
  return [options, work];
}
