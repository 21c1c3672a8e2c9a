import {
  invalidKey,
  isLockError,
  type LeaseLostError,
  LockError,
  type LossReason,
  WaitTimeoutError,
} from "../errors.ts";
import { BaseLease, type InternalLease, lossControllerOf, type SerializedLease } from "../lease/lease.ts";
import type { LeaseHandle } from "../lease/lease-state.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { leaseOrNull, type AcquireStrategy, type Tried } from "./lockable.ts";
import { invalidValue } from "../option-checks.ts";
import { AttemptSharing, JoinedLease } from "./attempt-sharing.ts";
import type { KeyAcquirer } from "./key-acquirer.ts";

/** One lease on several keys. If one key is lost, the lease is lost, and the other keys expire unless the lease is released. */
class MultiLease extends BaseLease implements InternalLease {
  readonly #leases: readonly LeaseHandle[];
  readonly #ifLost: ResolvedAcquire["ifLost"];
  #controller: AbortController | undefined;
  #loss: LeaseLostError | undefined;
  #releasing: Promise<boolean> | undefined;

  constructor(leases: readonly LeaseHandle[], { ifLost, minHoldMs }: ResolvedAcquire) {
    super();
    this.#leases = leases;
    this.#ifLost = ifLost;
    const weak = new WeakRef(this); // so that a dropped handle ends the renewals
    for (const lease of leases) {
      lease.holdFor(minHoldMs);
      lease.onLoss((loss) => {
        const multiLease = weak.deref();
        if (multiLease) {
          multiLease.#memberLost(loss);
        }
      });
    }
  }

  get key(): string {
    return this.#first.key;
  }

  get keys(): readonly string[] {
    return this.#leases.map(({ key }) => key);
  }

  get owner(): string {
    return this.#first.owner;
  }

  get fencingToken(): bigint {
    return this.#first.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, bigint> {
    return new Map(this.#leases.map(({ key, fencingToken }) => [key, fencingToken]));
  }

  get validUntil(): number {
    return Math.min(...this.#leases.map(({ validUntil }) => validUntil));
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = lossControllerOf(this);
      for (const lease of this.#leases) {
        lease.onLoss((loss) => this.#memberLost(loss)); // a strong reference, because a caller may wait for the signal alone
      }
      this.#abort();
    }
    return this.#controller.signal;
  }

  get isTransferred(): boolean {
    return false;
  }

  currentLoss(): LossReason | undefined {
    return this.#leases.map((lease) => lease.currentLoss()).find((reason) => reason !== undefined);
  }

  get isLost(): boolean {
    return this.#leases.some(({ isLost }) => isLost);
  }

  remainingMs(): number {
    return Math.min(...this.#leases.map((lease) => lease.remainingMs()));
  }

  throwIfLost(): void {
    for (const lease of this.#leases) {
      lease.throwIfLost();
    }
  }

  async extend(ttlMs?: number): Promise<void> {
    this.throwIfLost();
    const extensions = this.#leases.map((lease) => lease.extend(ttlMs));
    await Promise.allSettled(extensions);
    this.throwIfLost();
    await Promise.all(extensions);
  }

  release(): Promise<boolean> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  orphan(): void {
    for (const lease of this.#leases) {
      lease.orphan();
    }
  }

  transfer(): SerializedLease {
    const message = `A lease of several keys cannot be transferred; acquire "${this.key}" alone to transfer it`;
    throw new LockError(message, { code: "unsupported", key: this.key });
  }

  get #first(): LeaseHandle {
    return this.#leases[0] as LeaseHandle;
  }

  async #release(): Promise<boolean> {
    const releases = this.#leases.map((lease) => lease.release());
    await Promise.allSettled(releases);
    return (await Promise.all(releases)).every(Boolean);
  }

  #memberLost(loss: LeaseLostError): void {
    if (this.#loss || this.#releasing) {
      return;
    }
    this.#loss = loss;
    for (const lease of this.#leases) {
      lease.orphan(); // no effect on a lost lease
    }
    this.#abort();
  }

  #abort(): void {
    if (this.#loss && this.#ifLost === "abort") {
      this.#controller?.abort(this.#loss);
    }
  }
}

const maxKeys = 64;
/** A shorter wait may end before the reply of the engine. */
const minWaitMs = 50;

/**
 * Acquires several keys under one lease: all keys or none. A waiting caller acquires the keys one after another in sorted order, and
 * holds the acquired keys while it waits. Because all callers use the same order, no two callers wait for each other.
 */
export class MultiLock {
  readonly #coordinator: LocalCoordinator;
  readonly #acquirer: KeyAcquirer;
  readonly #sharedAttempts: AttemptSharing<JoinedLease>;

  constructor(coordinator: LocalCoordinator, acquirer: KeyAcquirer) {
    this.#coordinator = coordinator;
    this.#acquirer = acquirer;
    this.#sharedAttempts = new AttemptSharing(coordinator, (hold) => new JoinedLease(hold));
  }

  /** @throws {LockError} `invalid-key` @throws {TypeError} `keys` is no array */
  strategy(
    keys: readonly string[],
    defaults: ResolvedAcquire,
  ): AcquireStrategy<AcquireOptions, ResolvedAcquire, MultiLease | JoinedLease> {
    const distinct = distinctKeys(keys, (key) => this.#coordinator.checkKey(key));
    return {
      resolve: (options) => this.#acquirer.resolve(options, defaults),
      resolveTry: (options) => this.#acquirer.resolveTry(options, defaults),
      acquire: (options) =>
        options.attemptId === undefined
          ? this.#acquire(distinct, options)
          : this.#acquireShared(distinct, options),
      try: (options) =>
        options.attemptId === undefined ? this.#try(distinct, options) : this.#tryShared(distinct, options),
    };
  }

  /** A repeat has the same keys and `attemptId`, and shares the lease of the first call. */
  async #acquireShared(keys: readonly string[], options: ResolvedAcquire): Promise<JoinedLease> {
    const lease = await this.#sharedAttempts.acquire(attemptName(keys, options), options, ({ waitMs }) =>
      this.#acquire(keys, { ...options, waitMs }),
    );
    if (!lease) {
      throw new WaitTimeoutError(keys[0] as string, options.waitMs);
    }
    return lease;
  }

  async #tryShared(keys: readonly string[], options: ResolvedAcquire): Promise<Tried<JoinedLease>> {
    const lease = await this.#sharedAttempts.try(attemptName(keys, options), options, ({ signal }) =>
      this.#try(keys, { ...options, signal }).then(leaseOrNull),
    );
    return lease ? { lease } : { holder: undefined };
  }

  async #acquire(keys: readonly string[], options: ResolvedAcquire): Promise<MultiLease> {
    const { clock } = this.#coordinator;
    const deadline = clock.now() + options.waitMs;
    const lease = await this.#tryFirst(keys, options, deadline);
    if (lease) {
      return lease;
    }
    for (;;) {
      const leases = await this.#acquireInOrder(keys, options, deadline);
      const lease = await this.#combine(leases, options);
      if (lease) {
        return lease;
      }
    }
  }

  /** Free keys are acquired at once. Undefined: a key is held, or a try costs too much, so the caller waits for one key after another. */
  async #tryFirst(
    keys: readonly string[],
    options: ResolvedAcquire,
    deadline: number,
  ): Promise<MultiLease | undefined> {
    const { clock, driver } = this.#coordinator;
    const isQuorum = driver.capabilities.guarantee === "quorum"; // there a try that misses one key costs a broadcast for each key
    if (keys.length === 1 || options.waitMs === 0 || isQuorum) {
      return undefined;
    }
    try {
      return leaseOrNull(await this.#try(keys, options)) ?? undefined;
    } catch (error) {
      if (clock.now() >= deadline) {
        throw error; // the sequential requests would exceed the deadline
      }
      return rethrowUnlessRetryable(error);
    }
  }

  /** Acquires the keys in sorted order. Acquired leases are renewed during the wait for the others. */
  async #acquireInOrder(
    keys: readonly string[],
    options: ResolvedAcquire,
    deadline: number,
  ): Promise<readonly LeaseHandle[]> {
    const { clock } = this.#coordinator;
    const leases: LeaseHandle[] = [];
    const renewed = { ...options, renew: true, maxHoldMs: Infinity, minHoldMs: 0, ifLost: "abort" } as const;
    try {
      for (const key of keys) {
        const remainingMs = deadline - clock.now();
        // If earlier waits left too little time for a reply, the key is tried once.
        const isTooLittle = remainingMs < options.waitMs && remainingMs < minWaitMs;
        const waitMs = isTooLittle ? 0 : Math.max(0, remainingMs);
        leases.push(await this.#acquirer.acquireUnshared(key, { ...renewed, waitMs }));
      }
      return leases;
    } catch (error) {
      await releaseAll(leases);
      throw error instanceof WaitTimeoutError && error.key !== undefined
        ? new WaitTimeoutError(error.key, options.waitMs, error.holder, error.position)
        : error;
    }
  }

  /** Combines the leases into one. Null: a lease was lost during the wait for the others. */
  async #combine(leases: readonly LeaseHandle[], options: ResolvedAcquire): Promise<MultiLease | null> {
    try {
      if (!options.renew) {
        await Promise.all(leases.map((lease) => lease.stopRenewingAfter(options.ttlMs)));
      }
      if (areHeld(leases)) {
        for (const lease of leases) {
          lease.endAfter(options.maxHoldMs);
        }
        return new MultiLease(leases, options);
      }
    } catch (error) {
      await releaseAll(leases);
      if (areHeld(leases)) {
        throw error;
      }
      return null;
    }
    await releaseAll(leases);
    return null;
  }

  /** Tries all keys at once. A driver may send such tries in one call. */
  async #try(keys: readonly string[], options: ResolvedAcquire): Promise<Tried<MultiLease>> {
    const tries = await Promise.allSettled(
      keys.map((key) => this.#acquirer.tryAlone(key, { ...options, minHoldMs: 0, ifLost: "abort" })),
    );
    const answers = tries.flatMap((tried) => (tried.status === "fulfilled" ? [tried.value] : []));
    const leases = answers.flatMap((tried) => ("lease" in tried ? [tried.lease] : []));
    if (leases.length === keys.length && areHeld(leases)) {
      return { lease: new MultiLease(leases, options) };
    }
    await releaseAll(leases);
    const failed = tries.find((tried) => tried.status === "rejected");
    if (failed) {
      throw failed.reason;
    }
    const holders = answers.flatMap((tried) => ("lease" in tried ? [] : [tried.holder]));
    return { holder: holders.find((holder) => holder !== undefined) };
  }
}

/** The keys in sorted order, without duplicates. @throws {LockError} `invalid-key`: a key is invalid, or not 1 to 64 keys */
function distinctKeys(keys: readonly string[], check: (key: string) => void): readonly string[] {
  if (!Array.isArray(keys)) {
    throw invalidValue("keys", "an array of keys", keys);
  }
  keys.forEach(check);
  const distinct = Array.from(new Set<string>(keys)).sort();
  if (distinct.length === 0 || distinct.length > maxKeys) {
    throw invalidKey(`\`keys\` has ${distinct.length} different keys; one lease has 1 to ${maxKeys}`);
  }
  return distinct;
}

function attemptName(keys: readonly string[], { attemptId }: ResolvedAcquire): string {
  return JSON.stringify([attemptId, ...keys]);
}

/** A waiting caller tolerates transient failures of the engine. */
function rethrowUnlessRetryable(error: unknown): undefined {
  const isOfEngine = isLockError(error, "engine-unavailable") || isLockError(error, "replicas-not-reached");
  if (!isOfEngine || !error.retryable) {
    throw error;
  }
  return undefined;
}

function areHeld(leases: readonly LeaseHandle[]): boolean {
  return leases.every((lease) => lease.currentLoss() === undefined);
}

async function releaseAll(leases: readonly LeaseHandle[]): Promise<void> {
  await Promise.allSettled(leases.map((lease) => lease.release()));
}
