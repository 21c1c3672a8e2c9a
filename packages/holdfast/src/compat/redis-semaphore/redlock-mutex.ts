import { isLockError } from "../../errors.ts";
import { checkKey } from "../../option-checks.ts";
import { findLease } from "./find-lease.ts";
import { BaseLock } from "./base-lock.ts";
import type { LockOptions } from "./options.ts";
import { locksOfQuorum, maxQuorumTtlMs, type RedisClient } from "./clients.ts";

/**
 * A mutex on the key `mutex:<key>` of a majority of independent servers. It excludes `RedlockMutex` objects of redis-semaphore with
 * the same key and the same servers, and is excluded by them.
 */
export class RedlockMutex extends BaseLock {
  /** @throws {TypeError | RangeError} an argument is invalid */
  constructor(clients: readonly RedisClient[], key: string, options?: LockOptions) {
    const name = `mutex:${checkKey(key)}`;
    const locks = locksOfQuorum(clients);
    const mutex = locks.mutex(name);
    const target = {
      kind: "redlock-mutex",
      key: name,
      locks,
      maxTtlMs: maxQuorumTtlMs,
      acquire: mutex.acquire.bind(mutex),
      find: async (identifier: string) => findLease(name, identifier, locks, clients),
    };
    super(target, options);
  }

  /**
   * Releases the lock. No effect if this object does not hold the lock. If too few nodes reply, the release continues in the background,
   * and the call resolves, as that of redis-semaphore.
   */
  override async release(): Promise<void> {
    try {
      await super.release();
    } catch (error) {
      if (!isLockError(error, "quorum-not-reached")) {
        throw error;
      }
    }
  }
}
