import { engineFacts, publish } from "./diagnostics.ts";
import type { Capabilities, Driver, ExtendResult, VerifyResult } from "./driver.ts";
import { addUser, checkDriver, removeUser } from "./driver-users.ts";
import { LeaseLostError } from "./errors.ts";
import { MutexElection, type Election } from "./kinds/election.ts";
import { assertSupported } from "./kinds/engine-kinds.ts";
import { checkLatch, latch, type Latch, type LatchOptions } from "./kinds/latch.ts";
import {
  checkWork,
  lockable,
  type Lockable,
  type LockedCallback,
  LockRunner,
  LockScope,
  leaseOrNull,
  type WithLockResult,
} from "./kinds/lockable.ts";
import { MultiLock } from "./kinds/multi-lock.ts";
import { OnceRunner, type OnceOptions } from "./kinds/once.ts";
import { KeyAcquirer } from "./kinds/key-acquirer.ts";
import {
  checkLimit,
  readWrite,
  type ReadWrite,
  semaphore,
  type Semaphore,
  type SemaphoreOptions,
} from "./kinds/shared.ts";
import { ReentrantFactory, type ReentrantOptions } from "./kinds/reentrant.ts";
import { LeaseState, type LeaseStateOptions } from "./lease/lease-state.ts";
import { type Lease, parseSerialized, type SerializedLease } from "./lease/lease.ts";
import { LocalCoordinator } from "./local/coordinator.ts";
import type { HeldLease, LockState } from "./lock-state.ts";
import type { Locks, LocksAdmin } from "./locks.ts";
import { checkFencingToken, checkObject } from "./option-checks.ts";
import {
  assertNoAttemptId,
  resolveAdopt,
  resolveLocks,
  type AcquireOptions,
  type AdoptOptions,
  type LocksOptions,
  type ResolvedAcquire,
  type TryOptions,
} from "./options.ts";
import { OperatorCalls } from "./operator/operator-calls.ts";
import { inspectAsJson } from "./runtime/plain-values.ts";
import { remainingValidityMs, type Validity } from "./validity.ts";

/**
 * Creates locks on the engine of `driver`. A process needs one `Locks` for each engine, because each driver has connections of its own.
 * @throws {LockError} `closed`: the last `Locks` that used the driver has closed the driver
 * @example
 * ```ts
 * import { createLocks } from "holdfast";
 * import { redis } from "holdfast/redis";
 * import { Redis } from "ioredis";
 * const locks = createLocks(redis(new Redis(process.env.REDIS_URL)));
 * ```
 */
export function createLocks(driver: Driver, options?: LocksOptions): Locks {
  checkDriver(driver);
  const resolved = resolveLocks(options, driver.capabilities.maxTtlMs);
  addUser(driver);
  driver.setOwner(resolved.owner);
  return new DriverLocks(driver, new LocalCoordinator(driver, resolved));
}

class DriverLocks implements Locks {
  static {
    inspectAsJson(this.prototype, "Locks");
  }

  readonly admin: LocksAdmin;
  readonly #driver: Driver;
  readonly #coordinator: LocalCoordinator;
  readonly #acquirer: KeyAcquirer;
  readonly #reentrant: ReentrantFactory;
  readonly #multiLock: MultiLock;
  readonly #runner: LockRunner;
  readonly #once: OnceRunner;
  readonly #stopListening: () => void;
  #closing: Promise<void> | undefined;

  constructor(driver: Driver, coordinator: LocalCoordinator) {
    this.#driver = driver;
    this.#coordinator = coordinator;
    const scope = new LockScope();
    this.#acquirer = new KeyAcquirer(coordinator, scope);
    this.#reentrant = new ReentrantFactory(coordinator, scope, this.#acquirer);
    this.#multiLock = new MultiLock(coordinator, this.#acquirer);
    this.#runner = new LockRunner(scope, driver.clock);
    const { maxTtlMs } = driver.capabilities;
    this.#once = new OnceRunner(this.#acquirer, this.#runner, { clock: driver.clock, maxTtlMs });
    this.admin = new OperatorCalls(coordinator, (key) => this.inspect(key));
    this.#stopListening = coordinator.listen();
  }

  get instance(): number {
    return this.#coordinator.instance;
  }

  tryAcquire(key: string, options?: TryOptions): Promise<Lease | null> {
    return this.#acquirer.try(key, this.#acquirer.resolveTry(options, this.#defaults)).then(leaseOrNull);
  }

  acquire(key: string, options?: AcquireOptions): Promise<Lease> {
    return this.#acquirer.acquire(key, this.#acquirer.resolve(options, this.#defaults));
  }

  withLock<T>(key: string, ...args: [LockedCallback<T>] | [AcquireOptions, LockedCallback<T>]): Promise<T> {
    return this.#mutex(key).withLock(...(args as [AcquireOptions, LockedCallback<T>]));
  }

  tryWithLock<T>(
    key: string,
    ...args: [LockedCallback<T>] | [TryOptions, LockedCallback<T>]
  ): Promise<WithLockResult<T>> {
    return this.#mutex(key).tryWithLock(...(args as [TryOptions, LockedCallback<T>]));
  }

  once<T>(key: string, options: OnceOptions, work: LockedCallback<T>): Promise<WithLockResult<T>> {
    checkWork(work);
    return this.#once.run(key, this.#once.resolve(options, this.#defaults), work);
  }

  mutex(key: string, defaults?: AcquireOptions): Lockable {
    return this.#mutex(this.#key(key), this.#ownDefaults(defaults));
  }

  reentrant(key: string, defaults?: ReentrantOptions): Lockable<ReentrantOptions> {
    this.#key(key);
    assertNoAttemptId(defaults);
    const own = this.#reentrant.resolve(defaults, this.#defaults);
    return lockable(this.#reentrant.strategy(key, own), this.#runner);
  }

  readWrite(key: string, defaults?: AcquireOptions): ReadWrite {
    assertSupported(this.#driver.capabilities, "read-write", key);
    return readWrite(this.#key(key), this.#ownDefaults(defaults), this.#acquirer, this.#runner);
  }

  semaphore(key: string, options: SemaphoreOptions): Semaphore {
    checkObject("options", options);
    const { limit, ...args } = options;
    const own = { limit: checkLimit(limit), defaults: this.#ownDefaults(args) };
    assertSupported(this.#driver.capabilities, "semaphore", key);
    const deps = { acquirer: this.#acquirer, runner: this.#runner, coordinator: this.#coordinator };
    return semaphore(this.#key(key), own, deps);
  }

  latch(key: string, options: LatchOptions): Latch {
    const { maxTtlMs } = this.#driver.capabilities;
    const { count, ttlMs } = checkLatch(options, maxTtlMs);
    assertSupported(this.#driver.capabilities, "latch", key);
    return latch({ key: this.#key(key), count, ttlMs, generation: undefined }, this.#coordinator);
  }

  all(keys: readonly string[], defaults?: AcquireOptions): Lockable {
    return lockable(this.#multiLock.strategy(keys, this.#ownDefaults(defaults)), this.#runner);
  }

  election(key: string, options?: AcquireOptions): Election {
    this.#key(key);
    assertNoAttemptId(options);
    const endless = { ...this.#defaults, waitMs: Infinity, maxHoldMs: Infinity };
    const views = { inspect: this.inspect.bind(this), watch: this.admin.watch.bind(this.admin) };
    return new MutexElection(key, this.#acquirer.resolve(options, endless), this.#acquirer, views);
  }

  inspect(key: string): Promise<LockState> {
    return this.#coordinator.forKey(key, async () =>
      this.#coordinator.withLocalState(await this.#driver.inspect(key)),
    );
  }

  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown"> {
    checkFencingToken(fencingToken);
    return this.#coordinator.forKey(key, async () => {
      const result = await this.#coordinator.checkFence(key, fencingToken);
      publish("fence-check", () => ({ key, ...engineFacts(this.#coordinator), fencingToken, result }));
      return result;
    });
  }

  held(): readonly HeldLease[] {
    return this.#coordinator.held();
  }

  adopt(serialized: SerializedLease, options?: AdoptOptions): Promise<Lease> {
    const { key, token, fencingToken, info, ttlMs } = parseSerialized(serialized);
    const resolved = resolveAdopt(options, ttlMs, this.#driver.capabilities.maxTtlMs);
    return this.#adopt(key, token, fencingToken, { ...resolved, info, ifLost: "abort", isAdopted: true });
  }

  toJSON(): { owner: string; guarantee: Capabilities["guarantee"]; isClosed: boolean } {
    const { owner } = this.#coordinator.options;
    return { owner, guarantee: this.#driver.capabilities.guarantee, isClosed: this.#closing !== undefined };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #mutex(key: string, defaults: ResolvedAcquire = this.#defaults): Lockable {
    return lockable(this.#acquirer.strategy(key, defaults), this.#runner);
  }

  #key(key: string): string {
    this.#coordinator.checkKey(key);
    return key;
  }

  get #defaults(): ResolvedAcquire {
    return this.#coordinator.options.defaults;
  }

  #ownDefaults(defaults: AcquireOptions | undefined): ResolvedAcquire {
    assertNoAttemptId(defaults);
    return this.#acquirer.resolve(defaults, this.#defaults);
  }

  async #adopt(key: string, token: string, fencingToken: bigint, options: LeaseStateOptions): Promise<Lease> {
    this.#coordinator.checkKey(key);
    await this.#coordinator.starting;
    this.#coordinator.assertOpen(key);
    const validity = await this.#validityOf(key, token, fencingToken, options.ttlMs);
    this.#coordinator.assertOpen(key);
    const grant = { key, token, fencingToken, fencingCount: 1, validity, isClaim: false };
    return LeaseState.create(this.#coordinator, grant, options).lease;
  }

  /** The validity of another process's grant. If the engine does not know it, the grant is extended. */
  async #validityOf(key: string, token: string, fencingToken: bigint, ttlMs: number): Promise<Validity> {
    const { clock } = this.#driver;
    let found: VerifyResult | ExtendResult = await this.#driver.verify(key, token, fencingToken);
    if (
      found.outcome === "valid" &&
      found.hasUnknownEnd === true &&
      remainingValidityMs(found.validity, clock) <= 0
    ) {
      found = await this.#driver.extend({ key, token, fencingToken, ttlMs, info: undefined });
    }
    if (found.outcome === "unknown") {
      throw found.error;
    }
    if (found.outcome === "lost" || remainingValidityMs(found.validity, clock) <= 0) {
      throw new LeaseLostError(key, found.outcome === "lost" ? found.reason : "expired", clock.wall());
    }
    return found.validity;
  }

  async #close(): Promise<void> {
    this.#once.close();
    await this.#coordinator.close();
    this.#stopListening();
    await removeUser(this.#driver, this.#coordinator.options.closeTimeoutMs);
  }
}
