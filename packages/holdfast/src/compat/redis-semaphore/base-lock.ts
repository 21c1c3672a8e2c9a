import { isLockError, LeaseLostError, LockError } from "../../errors.ts";
import type { Lease, SerializedLease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import type { AcquireOptions } from "../../options.ts";
import { systemClock } from "../../runtime/clock.ts";
import { LostLockError, TimeoutError } from "./errors.ts";
import { LeaseHold, releaseSerialized, SharedHold, type Hold } from "./holds.ts";
import type { Lock } from "./lock.ts";
import { resolveLock, type LockOptions, type LockSettings } from "./options.ts";

/** The lock of an object, and how to acquire a lease of that lock. */
export interface LockTarget {
  /** For messages. */
  readonly kind: string;
  /** The complete key on Redis, for messages. */
  readonly key: string;
  readonly locks: Locks;
  readonly maxTtlMs: number;
  acquire(options: AcquireOptions): Promise<Lease>;
  /** Finds the lease with this identifier. Undefined: the lock is free, or another lease holds it. Absent: not supported. */
  readonly find?: (identifier: string) => Promise<SerializedLease | undefined>;
}

/** The common part of all locks. */
export abstract class BaseLock implements Lock {
  readonly #target: LockTarget;
  readonly #settings: LockSettings;
  /** In the order of the acquires. */
  #holds: Hold[] = [];
  #pendingCount = 0;
  #isExternal: boolean;

  protected constructor(target: LockTarget, options: LockOptions | undefined) {
    this.#target = target;
    this.#settings = resolveLock(options, target.maxTtlMs);
    this.#isExternal = this.#settings.isExternal;
  }

  get identifier(): string {
    return this.#settings.identifier;
  }

  get isAcquired(): boolean {
    return this.#holds.some(({ isValid }) => isValid);
  }

  async acquire(abortSignal?: AbortSignal): Promise<void> {
    const cause = await this.#request(abortSignal);
    if (cause) {
      const { kind, key } = this.#target;
      throw new TimeoutError(`Acquire ${kind} ${key} timeout`, { cause });
    }
  }

  async tryAcquire(abortSignal?: AbortSignal): Promise<boolean> {
    return (await this.#request(abortSignal)) === undefined;
  }

  async release(): Promise<void> {
    if (this.#isExternal) {
      const found = await this.#find();
      this.#isExternal = false;
      return found && releaseSerialized(this.#target.locks, found);
    }
    // An ended lease first: its caller may be the one that releases, and the other leases may be in use.
    const hold = this.#holds.find(({ isValid }) => !isValid) ?? this.#holds[0];
    this.#holds = this.#holds.filter((other) => other !== hold);
    await hold?.release();
  }

  stopRefresh(): void {
    for (const hold of this.#holds) {
      hold.stopRenewing();
    }
  }

  /** @returns why the lock was not acquired; undefined: the lock was acquired */
  async #request(signal: AbortSignal | undefined): Promise<LockError | undefined> {
    if (this.#pendingCount === 0 && !this.isAcquired) {
      this.#holds = []; // no caller of this object has a lease to release
    }
    this.#pendingCount += 1;
    try {
      const hold = await (this.#isExternal ? this.#adopt() : this.#acquire(signal));
      this.#holds.push(hold);
      this.#isExternal = false;
      return undefined;
    } catch (error) {
      if (isNotAcquired(error)) {
        return error;
      }
      throw error;
    } finally {
      this.#pendingCount -= 1;
    }
  }

  async #acquire(signal: AbortSignal | undefined): Promise<Hold> {
    const { ttlMs, waitMs, renew, identifier } = this.#settings;
    const isShared = !renew && this.#target.find !== undefined;
    const labels = isShared ? { identifier } : undefined;
    const lease = await this.#target.acquire({ ttlMs, waitMs, renew, signal, labels, maxHoldMs: Infinity });
    const isClaim = lease.remainingMs() < ttlMs * fullTtl;
    return isShared ? this.#share(lease, isClaim) : this.#hold(lease);
  }

  /** Continues the lease of another object. */
  async #adopt(): Promise<Hold> {
    const { ttlMs, renew } = this.#settings;
    const found = await this.#find();
    if (!found) {
      throw new LeaseLostError(this.#target.key, "expired", systemClock.wall());
    }
    const lease = await this.#target.locks.adopt(found, { renew, ttlMs, maxHoldMs: Infinity });
    if (!renew) {
      return this.#share(lease, true);
    }
    await extendOrOrphan(lease, ttlMs);
    return this.#hold(lease);
  }

  #hold(lease: Lease): Hold {
    return new LeaseHold(lease, this.#settings.renew ? (loss) => this.#reportLoss(loss) : undefined);
  }

  /** @param extend whether the lease has to be extended before its transfer: it is valid for less than its TTL */
  async #share(lease: Lease, extend: boolean): Promise<Hold> {
    if (extend) {
      await extendOrOrphan(lease, this.#settings.ttlMs);
    }
    const remainingMs = lease.remainingMs();
    return new SharedHold(this.#target.locks, lease.transfer(), remainingMs);
  }

  async #find(): Promise<SerializedLease | undefined> {
    const { find, kind, key } = this.#target;
    if (!find) {
      throw new LockError(
        `A ${kind} cannot be acquired externally ("${key}"); acquire it in the process that uses it`,
        {
          code: "unsupported",
          key,
        },
      );
    }
    return find(this.#settings.identifier);
  }

  /** An exception of the callback becomes an unhandled rejection, because redis-semaphore documents that for its default callback. */
  #reportLoss(cause: LeaseLostError): void {
    const { kind, key } = this.#target;
    const error = new LostLockError(`Lost ${kind} for key ${key}`, { cause });
    void Promise.resolve().then(() => this.#settings.onLockLost.call(this, error));
  }
}

/** A lease with a smaller part of its TTL is a claim, or its grant was slow. */
const fullTtl = 0.9;

async function extendOrOrphan(lease: Lease, ttlMs: number): Promise<void> {
  try {
    await lease.extend(ttlMs);
  } catch (error) {
    lease.orphan();
    throw error;
  }
}

/** Whether the lock is held, or the quorum could not decide within the wait. */
function isNotAcquired(error: unknown): error is LockError {
  return (
    isLockError(error, "wait-timeout") ||
    isLockError(error, "lease-lost") ||
    (isLockError(error, "quorum-not-reached") && error.retryable)
  );
}
