import type { LocalCoordinator } from "../local/coordinator.ts";
import { isLockError, WaitTimeoutError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import type { AcquireStrategy } from "./lockable.ts";
import { invalidValue } from "../option-checks.ts";
import type { AcquireOptions, ResolvedAcquire } from "../options.ts";
import { SharedAcquire } from "./joint-acquire.ts";
import { MultiLease } from "./multi-lease.ts";
import type { MutexFactory } from "./mutex.ts";
import { SharedLease } from "./reentrant-hold.ts";

const maxKeys = 64;
const minWaitMs = 50;

/**
 * Several keys under one lease: every key or none. Who waits takes the keys one after another in sorted order and keeps what he
 * has, so that no two wait for each other, in whatever order their callers named them.
 */
export class MultiLock {
  readonly #coordinator: LocalCoordinator;
  readonly #mutexes: MutexFactory;
  readonly #sharedAttempts: SharedAcquire<SharedLease>;

  constructor(coordinator: LocalCoordinator, mutexes: MutexFactory) {
    this.#coordinator = coordinator;
    this.#mutexes = mutexes;
    this.#sharedAttempts = new SharedAcquire(coordinator, (hold) => new SharedLease(hold));
  }

  /** @param keys from {@link distinctKeys} */
  strategy(
    keys: readonly string[],
    defaults: ResolvedAcquire,
  ): AcquireStrategy<AcquireOptions, ResolvedAcquire, MultiLease | SharedLease> {
    return {
      resolve: (options) => this.#mutexes.resolve(options, defaults),
      resolveTry: (options) => this.#mutexes.resolveTry(options, defaults),
      acquire: (options) =>
        options.attemptId === undefined ? this.#acquire(keys, options) : this.#acquireShared(keys, options),
      try: (options) =>
        options.attemptId === undefined ? this.#try(keys, options) : this.#tryShared(keys, options),
    };
  }

  /** A repeat names the same keys. It has all that the first one has. */
  async #acquireShared(keys: readonly string[], options: ResolvedAcquire): Promise<SharedLease> {
    const lease = await this.#sharedAttempts.acquire(attemptName(keys, options), options, ({ waitMs }) =>
      this.#acquire(keys, { ...options, waitMs }),
    );
    if (!lease) {
      throw new WaitTimeoutError(keys[0] as string, options.waitMs);
    }
    return lease;
  }

  #tryShared(keys: readonly string[], options: ResolvedAcquire): Promise<SharedLease | null> {
    return this.#sharedAttempts.try(attemptName(keys, options), options, ({ signal }) =>
      this.#try(keys, { ...options, signal }),
    );
  }

  async #acquire(keys: readonly string[], options: ResolvedAcquire): Promise<MultiLease> {
    const { clock } = this.#coordinator;
    const deadline = clock.now() + options.waitMs;
    const lease = await this.#tryAcquireMany(keys, options).catch((error: unknown) => {
      if (clock.now() >= deadline) {
        throw error; // to ask for one after another would take as long again
      }
      return rethrowUnlessRetryable(error);
    });
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

  /** What we have is renewed while we wait for the rest. */
  async #acquireInOrder(
    keys: readonly string[],
    options: ResolvedAcquire,
    deadline: number,
  ): Promise<readonly LeaseHandle[]> {
    const { clock } = this.#coordinator;
    const leases: LeaseHandle[] = [];
    const renewed = { ...options, renew: true, maxHoldMs: Infinity, ifLost: "abort" } as const;
    try {
      for (const key of keys) {
        const remainingMs = deadline - clock.now();
        // What waiting for others has left may be too little for an answer: then it is tried once.
        const isTooLittle = remainingMs < options.waitMs && remainingMs < minWaitMs;
        const waitMs = isTooLittle ? 0 : Math.max(0, remainingMs);
        leases.push(await this.#mutexes.acquireAlone(key, { ...renewed, waitMs }));
      }
      return leases;
    } catch (error) {
      await releaseAll(leases);
      throw error instanceof WaitTimeoutError && error.key !== undefined
        ? new WaitTimeoutError(error.key, options.waitMs, error.holder, error.position)
        : error;
    }
  }

  /** Null: one was lost while we waited for the others. */
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

  /** In one step, where all are free and the engine can: null where one is held, undefined where it cannot. */
  async #tryAcquireMany(
    keys: readonly string[],
    options: ResolvedAcquire,
  ): Promise<MultiLease | null | undefined> {
    if (keys.length === 1) {
      return undefined;
    }
    const leases = await this.#mutexes.tryAcquireMany(keys, { ...options, ifLost: "abort" });
    if (!leases || areHeld(leases)) {
      return leases && new MultiLease(leases, options);
    }
    await releaseAll(leases);
    return null;
  }

  async #try(keys: readonly string[], options: ResolvedAcquire): Promise<MultiLease | null> {
    const lease = await this.#tryAcquireMany(keys, options);
    if (lease !== undefined) {
      return lease;
    }
    const tries = await Promise.allSettled(
      keys.map((key) => this.#mutexes.tryAlone(key, { ...options, ifLost: "abort" })),
    );
    const leases = tries.flatMap((tried) =>
      tried.status === "fulfilled" && tried.value ? [tried.value] : [],
    );
    if (leases.length === keys.length && areHeld(leases)) {
      return new MultiLease(leases, options);
    }
    await releaseAll(leases);
    const failed = tries.find((tried) => tried.status === "rejected");
    if (failed) {
      throw failed.reason;
    }
    return null;
  }
}

/** In sorted order, each once. @throws {TypeError | RangeError} where it is no list of 1 to 64 keys */
export function distinctKeys(keys: readonly string[], check: (key: string) => string): readonly string[] {
  if (!Array.isArray(keys)) {
    throw invalidValue("keys", "an array of keys", keys);
  }
  const distinct = Array.from(new Set(keys.map(check))).sort();
  if (distinct.length === 0 || distinct.length > maxKeys) {
    throw new RangeError(`Expected \`keys\` to have 1 to ${maxKeys} different keys, got ${distinct.length}`);
  }
  return distinct;
}

function attemptName(keys: readonly string[], { attemptId }: ResolvedAcquire): string {
  return JSON.stringify([attemptId, ...keys]);
}

/** Who waits lives through an engine that fails for a while. */
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
