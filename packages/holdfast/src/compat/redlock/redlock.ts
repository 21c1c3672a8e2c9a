import { EventEmitter } from "node:events";

import { createLocks } from "../../create-locks.ts";
import type { RedisClient } from "../../drivers/redis/clients/detect.ts";
import { redis } from "../../drivers/redis/create.ts";
import { redlock } from "../../drivers/redis/redlock/create.ts";
import { isLockError, QuorumError } from "../../errors.ts";
import type { Lease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import { systemClock } from "../../runtime/clock.ts";
import { SharedLocks } from "../shared-locks.ts";
import { ExecutionError, ResourceLockedError, type ExecutionResult, type ExecutionStats } from "./errors.ts";
import { Lock, type LockHost } from "./lock.ts";
import { checkDuration, defaultSettings, settingsFrom, waitMsOf, type Settings } from "./settings.ts";

/** The signal of `using`. `error` is the reason of the abort. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

type Routine<T> = (signal: RedlockAbortSignal) => Promise<T>;

const noMajority = "The operation was unable to achieve a quorum during its retry window.";
const locked = "A resource is locked by another holder, or the lock has ended.";

/** Callers get leases of the full duration, in the order of all processes. */
const sharedLocks = new SharedLocks((clients) => {
  const [first] = clients;
  const isSingle = first !== undefined && clients.length === 1;
  const driver = isSingle ? redis(first, { prefix: "" }) : redlock(clients, { prefix: "" });
  return createLocks(driver, { handover: false });
});

/**
 * The class `Redlock` of the package `redlock`, on Holdfast. The keys are the same, so processes with either library exclude each other.
 *
 * One client is a single server, which needs no quorum. The differences from `redlock` are in docs/migrating/redlock.md.
 */
export class Redlock extends EventEmitter implements LockHost {
  readonly clients: ReadonlySet<RedisClient>;
  readonly settings: Settings;
  readonly #leases = new WeakMap<Lock, Lease>();

  /** @param settings the defaults of each call */
  constructor(clients: Iterable<RedisClient>, settings?: Partial<Settings>) {
    super();
    const list = Array.from(new Set(clients));
    if (list.length === 0) {
      throw new Error("Expected at least one Redis client, got none");
    }
    this.clients = new Set(list);
    this.settings = settingsFrom(settings, defaultSettings);
    sharedLocks.of(list); // throws for an unsuitable client
    this.on("error", () => undefined); // an event without a listener would throw
  }

  /** Locks all of the resources for `duration` ms, without automatic extension. @throws {ExecutionError} */
  async acquire(resources: readonly string[], duration: number, settings?: Partial<Settings>): Promise<Lock> {
    checkDuration(duration);
    return this.#lockOf(resources, await this.#lease(resources, duration, settings, false));
  }

  /** Releases a lock. @throws {ExecutionError} the lock has ended before, or the servers do not reply */
  async release(lock: Lock): Promise<ExecutionResult> {
    const lease = this.#leaseOf(lock);
    lock.expiration = 0;
    const wasReleased = await lease.release().catch((error: unknown) => Promise.reject(this.#failure(error)));
    if (!wasReleased) {
      throw this.#failure(new ResourceLockedError(locked));
    }
    return { attempts: [] };
  }

  /** Extends a lock. @returns a lock that replaces it @throws {ExecutionError} the lock has ended, or the servers do not reply */
  async extend(existing: Lock, duration: number): Promise<Lock> {
    checkDuration(duration);
    const lease = this.#leaseOf(existing);
    if (existing.expiration < systemClock.wall()) {
      throw new ExecutionError("Cannot extend an already-expired lock.", []);
    }
    await lease.extend(duration).catch((error: unknown) => Promise.reject(this.#failure(error)));
    existing.expiration = 0;
    return this.#lockOf(existing.resources, lease);
  }

  /** Runs `routine` with a lock that is extended until the end of the routine. The signal aborts when the lock is lost. */
  using<T>(resources: readonly string[], duration: number, routine: Routine<T>): Promise<T>;
  using<T>(
    resources: readonly string[],
    duration: number,
    settings: Partial<Settings>,
    routine: Routine<T>,
  ): Promise<T>;
  async using<T>(
    resources: readonly string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T>,
    last?: Routine<T>,
  ): Promise<T> {
    checkDuration(duration);
    const routine = typeof settingsOrRoutine === "function" ? settingsOrRoutine : last;
    const settings = typeof settingsOrRoutine === "function" ? undefined : settingsOrRoutine;
    if (typeof routine !== "function") {
      throw new TypeError(`Expected the routine to be a function, got ${typeof routine}`);
    }
    const { automaticExtensionThreshold } = settingsFrom(settings, this.settings);
    if (automaticExtensionThreshold > duration - 100) {
      throw new Error(
        `Expected a duration of at least 100 ms more than \`automaticExtensionThreshold\` (${automaticExtensionThreshold} ms), got ${duration} ms`,
      );
    }
    const lease = await this.#lease(resources, duration, settings, true);
    const lock = this.#lockOf(resources, lease);
    const signal = lease.signal as RedlockAbortSignal;
    signal.addEventListener("abort", () => (signal.error = signal.reason as Error), { once: true });
    try {
      return await routine(signal);
    } finally {
      await this.release(lock);
    }
  }

  /** Version 4: locks one or more resources. */
  lock(resource: string | readonly string[], duration: number): Promise<Lock> {
    return this.acquire(typeof resource === "string" ? [resource] : resource, duration);
  }

  /** Version 4: releases a lock. */
  unlock(lock: Lock): Promise<ExecutionResult> {
    return this.release(lock);
  }

  /**
   * Version 4, without bluebird: a lock for `await using`, which is released at the end of the scope.
   * @param onUnlockError called if the release fails
   */
  async disposer(
    resource: string | readonly string[],
    duration: number,
    onUnlockError?: (error: unknown) => void,
  ): Promise<Lock> {
    const lock = await this.lock(resource, duration);
    return Object.assign(lock, {
      [Symbol.asyncDispose]: async () => {
        await this.release(lock).catch((error: unknown) => onUnlockError?.(error));
      },
    });
  }

  /** Releases all locks of its clients, and ends their connections. A client without `quit` stays connected. */
  async quit(): Promise<void> {
    const clients = Array.from(this.clients);
    await sharedLocks.close(clients);
    await Promise.all(clients.map(async (client) => (client as { quit?(): Promise<unknown> }).quit?.()));
  }

  /** Instances with the same clients share one. */
  get #locks(): Locks {
    return sharedLocks.of(Array.from(this.clients));
  }

  async #lease(
    resources: readonly string[],
    duration: number,
    settings: Partial<Settings> | undefined,
    renew: boolean,
  ): Promise<Lease> {
    const keys = Array.from(new Set(resources));
    const [key] = keys;
    const locks = this.#locks;
    const lockable = key !== undefined && keys.length === 1 ? locks.mutex(key) : locks.all(keys);
    const waitMs = waitMsOf(settingsFrom(settings, this.settings));
    try {
      return await lockable.acquire({ ttlMs: duration, waitMs, renew });
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #lockOf(resources: readonly string[], lease: Lease): Lock {
    const lock = new Lock(
      this,
      resources,
      lease.fencingToken.toString(),
      systemClock.wall() + lease.remainingMs(),
    );
    this.#leases.set(lock, lease);
    return lock;
  }

  #leaseOf(lock: Lock): Lease {
    const lease = this.#leases.get(lock);
    if (lease === undefined) {
      throw new ExecutionError("The lock was not acquired by this Redlock.", []);
    }
    return lease;
  }

  /** The error of `redlock` for an error of Holdfast. Errors of arguments stay. */
  #failure(error: unknown): Error {
    const isHeld = isLockError(error) && (error.code === "wait-timeout" || error.code === "lease-lost");
    const isOfLock = isLockError(error) && error.code !== "invalid-key";
    if (!isOfLock && !(error instanceof ResourceLockedError)) {
      return error as Error;
    }
    const reason = isHeld ? new ResourceLockedError(locked, { cause: error }) : error;
    const clients = Array.from(this.clients);
    const votes = error instanceof QuorumError ? error.votes : undefined;
    const isFor = (index: number): boolean => votes?.[index]?.vote === "granted";
    const stats: ExecutionStats = {
      membershipSize: clients.length,
      quorumSize: Math.floor(clients.length / 2) + 1,
      votesFor: new Set(clients.filter((_, index) => isFor(index))),
      votesAgainst: new Map(
        clients.flatMap((client, index) => (isFor(index) ? [] : [[client, reason] as const])),
      ),
    };
    this.emit("error", reason);
    return new ExecutionError(noMajority, [Promise.resolve(stats)], { cause: reason });
  }
}
