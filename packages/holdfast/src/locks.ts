import { acquireLease, tryLease } from "./acquire.ts";
import { Contention } from "./contention.ts";
import { isHeard, tell, traced, traces, type AcquireTrace } from "./diagnostics.ts";
import type { Driver } from "./driver.ts";
import { closedError, LeaseLostError, WaitTimeoutError } from "./errors.ts";
import { Frames } from "./frames.ts";
import { Hold, type HoldOptions } from "./hold.ts";
import type { HeldLease, Lease, SerializedLease } from "./lease.ts";
import {
  checkFencingToken,
  checkKey,
  checkNames,
  checkSignal,
  checkText,
  refusal,
  refuseAttempt,
  resolveAcquire,
  resolveAdopt,
  resolveList,
  resolveLocks,
  type AcquireOptions,
  type AdoptOptions,
  type ListOptions,
  type LocksOptions,
  type ResolvedAcquire,
  type TryOptions,
} from "./options.ts";
import { parseSerialized } from "./serialized.ts";
import type { LockEvent, LockState, NodeState } from "./state.ts";
import { leftOf } from "./validity.ts";
import { within } from "./wait.ts";

/** The answer of a `tryWithLock`: the value of the work, or that it did not run as another held the lock. */
export type Ran<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

type Work<T, L extends Lease = Lease> = (lease: L) => T | Promise<T>;

/** What every kind of lock offers. See {@link Locks} for what the calls guarantee. */
export interface Lockable<O = AcquireOptions, L extends Lease = Lease> {
  tryAcquire(options?: Omit<O, "waitMs">): Promise<L | null>;
  acquire(options?: O): Promise<L>;
  withLock<T>(work: Work<T, L>): Promise<T>;
  withLock<T>(options: O, work: Work<T, L>): Promise<T>;
  tryWithLock<T>(work: Work<T, L>): Promise<Ran<T>>;
  tryWithLock<T>(options: Omit<O, "waitMs">, work: Work<T, L>): Promise<Ran<T>>;
}

/**
 * Locks on one engine. Grants at most one lease per key at a time, in order of arrival.
 * Bad options and keys throw `TypeError` or `RangeError` synchronously, before any I/O.
 */
export interface Locks extends AsyncDisposable {
  /**
   * Asks once.
   * @returns null where another holds the lock; everything else is an error
   * @throws {EngineError} when the engine does not answer within its command budget
   * @throws {QuorumError} when too few nodes of a quorum do
   */
  tryAcquire(key: string, options?: TryOptions): Promise<Lease | null>;
  /**
   * Waits for the lock, through transient failures of the engine.
   * @throws {WaitTimeoutError} when `waitMs` passes and the key is still held
   * @throws {EngineError} when the engine cannot be reached until `waitMs` has passed; at once where that cannot pass by itself
   * @throws {QuorumError} the same of a quorum
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Runs the work under the lock and releases in every case. The work's own error wins over whatever the release does.
   * @throws {LeaseLostError} with the work's value as `result`, when the lease was lost before the work ended
   */
  withLock<T>(key: string, work: Work<T>): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions, work: Work<T>): Promise<T>;
  tryWithLock<T>(key: string, work: Work<T>): Promise<Ran<T>>;
  tryWithLock<T>(key: string, options: TryOptions, work: Work<T>): Promise<Ran<T>>;
  /** The calls above with the key, and defaults of their own, in front. */
  mutex(key: string, defaults?: AcquireOptions): Lockable;

  inspect(key: string): Promise<LockState>;
  /** Locks that are held now. Pages of about `limit` (default 100); `cursor` null: that was the last. */
  list(options?: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }>;
  /** A snapshot, then changes, coalesced; ends with the signal. */
  watch(
    target: string | { prefix: string },
    options?: { signal?: AbortSignal | undefined },
  ): AsyncIterable<LockEvent>;
  /** `stale`: a newer grant was made; `current`: none was; `unknown`: the engine remembers no grant, or none so new. */
  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown">;
  /** What each server says of itself, and our view of it. */
  nodes(): Promise<NodeState[]>;
  /** An operator's force: ends the grant that carries the token. Answers whether it was the present one. */
  breakLock(key: string, options: { fencingToken: bigint; reason: string }): Promise<boolean>;
  /**
   * Takes over a lease that was transferred; verified at the engine, not extended by that.
   * @throws {LeaseLostError} when it is gone
   */
  adopt(serialized: SerializedLease, options?: AdoptOptions): Promise<Lease>;
  /** Waiters reject `closed`, leases are released, all within `closeTimeoutMs`. The last `Locks` of a driver closes it. */
  close(): Promise<void>;
}

/** How many `Locks` use a driver: the last one closes it. */
const users = new WeakMap<Driver, number>();

/**
 * Locks on the engine behind `driver`.
 * @throws {LockError} `closed`, when the driver was closed with the last `Locks` that used it
 */
export function createLocks(driver: Driver, options?: LocksOptions): Locks {
  checkDriver(driver);
  const resolved = resolveLocks(options, driver.capabilities.maxTtlMs);
  if (users.get(driver) === 0) {
    throw closedError();
  }
  users.set(driver, (users.get(driver) ?? 0) + 1);
  driver.introduce(resolved.owner);
  return new DriverLocks(driver, new Contention(driver, resolved));
}

function checkDriver(driver: Driver): void {
  const capabilities: unknown =
    typeof driver === "object" && driver !== null ? driver.capabilities : undefined;
  if (typeof capabilities !== "object" || capabilities === null) {
    throw new TypeError("Expected `driver` to be a driver, such as redis(client) or memory() gives");
  }
}

class DriverLocks implements Locks {
  readonly #driver: Driver;
  readonly #contention: Contention;
  readonly #frames = new Frames();
  readonly #forgetDriver: () => void;
  #closing: Promise<void> | undefined;

  constructor(driver: Driver, contention: Contention) {
    this.#driver = driver;
    this.#contention = contention;
    this.#forgetDriver = driver.listen({
      lost: (token, reason, cause) => {
        contention.lose(token, reason, cause);
      },
      mayHaveMissed: () => {
        contention.verify();
      },
    });
  }

  tryAcquire(key: string, options?: TryOptions): Promise<Lease | null> {
    return this.#try(this.#key(key), this.#resolveTry(options, this.#contention.options.defaults));
  }

  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    return this.#acquire(this.#key(key), this.#resolve(options, this.#contention.options.defaults));
  }

  withLock<T>(key: string, ...rest: [Work<T>] | [AcquireOptions, Work<T>]): Promise<T> {
    return this.#withLock(this.#key(key), this.#contention.options.defaults, rest);
  }

  tryWithLock<T>(key: string, ...rest: [Work<T>] | [TryOptions, Work<T>]): Promise<Ran<T>> {
    return this.#tryWithLock(this.#key(key), this.#contention.options.defaults, rest);
  }

  mutex(key: string, defaults?: AcquireOptions): Lockable {
    this.#key(key);
    refuseAttempt(defaults);
    const own = this.#resolve(defaults, this.#contention.options.defaults);
    return {
      tryAcquire: (options) => this.#try(key, this.#resolveTry(options, own)),
      acquire: (options) => this.#acquire(key, this.#resolve(options, own)),
      withLock: <T>(...rest: [Work<T>] | [AcquireOptions, Work<T>]) => this.#withLock(key, own, rest),
      tryWithLock: <T>(...rest: [Work<T>] | [TryOptions, Work<T>]) => this.#tryWithLock(key, own, rest),
    };
  }

  inspect(key: string): Promise<LockState> {
    this.#key(key);
    return this.#ask(async () => this.#contention.correct(await this.#driver.inspect(key)));
  }

  list(options?: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }> {
    const query = resolveList(options);
    return this.#ask(() => this.#driver.list(query));
  }

  watch(
    target: string | { prefix: string },
    options: { signal?: AbortSignal | undefined } = {},
  ): AsyncIterable<LockEvent> {
    if (typeof target === "string") {
      this.#key(target);
    } else if (typeof target?.prefix !== "string") {
      throw refusal("target", "a key, or an object with a `prefix`", target);
    } else {
      checkNames(target, ["prefix"]);
    }
    checkNames(options, ["signal"]);
    const { signal } = options;
    const ends = [this.#contention.closing, ...(signal === undefined ? [] : [checkSignal("signal", signal)])];
    this.#checkOpen();
    return this.#driver.watch(target, AbortSignal.any(ends));
  }

  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown"> {
    this.#key(key);
    checkFencingToken(fencingToken);
    return this.#ask(async () =>
      this.#contention.handedOnFrom(key, fencingToken) ? "stale" : this.#driver.checkFence(key, fencingToken),
    );
  }

  nodes(): Promise<NodeState[]> {
    return this.#ask(() => this.#driver.nodes());
  }

  breakLock(key: string, options: { fencingToken: bigint; reason: string }): Promise<boolean> {
    this.#key(key);
    checkNames(options, ["fencingToken", "reason"]);
    const fencingToken = checkFencingToken(options.fencingToken);
    const reason = checkText("reason", options.reason, 1024);
    return this.#ask(async () => {
      const isStale = this.#contention.handedOnFrom(key, fencingToken);
      const isBroken = !isStale && (await this.#driver.breakGrant(key, fencingToken, reason));
      if (isBroken) {
        tell("broken", () => ({ key, fencingToken, reason }));
      }
      return isBroken;
    });
  }

  adopt(serialized: SerializedLease, options?: AdoptOptions): Promise<Lease> {
    const { key, token, fencingToken, words, ttlMs } = parseSerialized(serialized);
    const resolved = resolveAdopt(options, ttlMs, this.#driver.capabilities.maxTtlMs);
    return this.#adopt(key, token, fencingToken, { ...resolved, words, ifLost: "abort", mayBeShared: true });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #key(key: string): string {
    this.#driver.checkKey(checkKey(key));
    return key;
  }

  #resolve(options: AcquireOptions | undefined, defaults: ResolvedAcquire): ResolvedAcquire {
    return resolveAcquire(options, defaults, { maxTtlMs: this.#driver.capabilities.maxTtlMs });
  }

  #resolveTry(options: TryOptions | undefined, defaults: ResolvedAcquire): ResolvedAcquire {
    return resolveAcquire(options, defaults, { maxTtlMs: this.#driver.capabilities.maxTtlMs, tryOnly: true });
  }

  #acquire(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    return isHeard(traces.acquire) ? this.#acquireTraced(key, options) : this.#acquireOnce(key, options);
  }

  #acquireOnce(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    try {
      this.#admit(key, options);
    } catch (error) {
      return Promise.reject(error as Error);
    }
    return options.waitMs > 0 ? acquireLease(this.#contention, key, options) : this.#acquireNow(key, options);
  }

  /** Without waiting; where it is held, by whom. */
  async #acquireNow(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    const tried = await tryLease(this.#contention, key, options);
    if ("held" in tried) {
      const holder = tried.held.holder ?? (await this.#driver.inspect(key).catch(() => null))?.holders[0];
      throw new WaitTimeoutError(key, 0, holder, tried.held.position);
    }
    return tried.lease;
  }

  #acquireTraced(key: string, options: ResolvedAcquire): Promise<HeldLease> {
    return traced(
      traces.acquire,
      (): AcquireTrace => ({ key, waitMs: options.waitMs }),
      () => this.#acquireOnce(key, options),
      (context, lease) => {
        context.outcome = "granted";
        context.fencingToken = lease.fencingToken;
      },
    );
  }

  #try(key: string, options: ResolvedAcquire): Promise<HeldLease | null> {
    return traced(
      traces.acquire,
      (): AcquireTrace => ({ key, waitMs: 0 }),
      async () => {
        this.#admit(key, options);
        const tried = await tryLease(this.#contention, key, options);
        return "held" in tried ? null : tried.lease;
      },
      (context, lease) => {
        context.outcome = lease ? "granted" : "held";
        if (lease) {
          context.fencingToken = lease.fencingToken;
        }
      },
    );
  }

  /** Refuses what must not reach the engine. */
  #admit(key: string, options: ResolvedAcquire): void {
    this.#checkOpen(key);
    options.signal?.throwIfAborted();
    this.#frames.refuseWithin(key);
  }

  #withLock<T>(
    key: string,
    defaults: ResolvedAcquire,
    rest: readonly [Work<T>] | readonly [AcquireOptions, Work<T>],
  ): Promise<T> {
    const [options, work] = splitWork(rest);
    const resolved = this.#resolve(options, defaults);
    return this.#acquire(key, resolved).then((lease) => this.#run(lease, resolved, work));
  }

  #tryWithLock<T>(
    key: string,
    defaults: ResolvedAcquire,
    rest: readonly [Work<T>] | readonly [TryOptions, Work<T>],
  ): Promise<Ran<T>> {
    const [options, work] = splitWork(rest);
    const resolved = this.#resolveTry(options, defaults);
    return this.#try(key, resolved).then(async (lease): Promise<Ran<T>> =>
      lease ? { ran: true, value: await this.#run(lease, resolved, work) } : { ran: false },
    );
  }

  /** The work's error wins. Work that ended well is told of a loss, and never fails for a release that takes longer. */
  async #run<T>(lease: HeldLease, options: ResolvedAcquire, work: Work<T>): Promise<T> {
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
      throw new LeaseLostError(lease.key, loss, this.#driver.clock.wall(), { result: value });
    }
    return value;
  }

  async #adopt(key: string, token: string, fencingToken: bigint, options: HoldOptions): Promise<Lease> {
    this.#checkOpen(key);
    const verified = await this.#driver.verify(key, token);
    if (verified.outcome === "lost" || leftOf(verified.validity, this.#driver.clock) <= 0) {
      const reason = verified.outcome === "lost" ? verified.reason : "expired";
      throw new LeaseLostError(key, reason, this.#driver.clock.wall());
    }
    const grant = { key, token, fencingToken, fencingCount: 1, validity: verified.validity, isClaim: false };
    const { lease, hold } = Hold.keep(this.#contention, grant, options);
    if (this.#contention.isClosed) {
      hold.orphan();
      throw closedError(key);
    }
    return lease;
  }

  async #close(): Promise<void> {
    await this.#contention.close();
    this.#forgetDriver();
    const left = (users.get(this.#driver) ?? 1) - 1;
    users.set(this.#driver, left);
    if (left === 0) {
      await within(this.#driver.clock, this.#contention.options.closeTimeoutMs, this.#driver.close());
    }
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    return question();
  }

  #checkOpen(key?: string): void {
    if (this.#contention.isClosed) {
      throw closedError(key);
    }
  }
}

function splitWork<O, T>(rest: readonly [Work<T>] | readonly [O, Work<T>]): [O | undefined, Work<T>] {
  const [options, work] = rest.length === 1 ? [undefined, rest[0]] : rest;
  if (typeof work !== "function") {
    throw refusal("work", "a function", work);
  }
  return [options, work];
}
