import { Mutex, RedlockMutex, Semaphore, type LockOptions } from "redis-semaphore";

import type { Client } from "../clients.ts";
import type { AcquireOptions, Lease, Library, Locks } from "../library.ts";

/** This library renews by default at 0.8 of the TTL, and throws a loss inside its timer. So a holder uses the callback for a loss instead. */
export const redisSemaphore: Library = {
  settings:
    "defaults (10 ms between tries, renewal at 0.8 of the TTL), acquireTimeout for the wait, onLockLost",
  onServer: (client) => ({
    ...locksOf((key, options) => new Mutex(client, key, options)),
    permit: async (key, { limit, ...options }) => {
      const lossFlag = { isLost: false };
      const semaphore = new Semaphore(client, key, limit, optionsOf(options, lossFlag));
      await semaphore.acquire();
      return leaseOf(semaphore, lossFlag);
    },
  }),
  onQuorum: (clients: readonly Client[]) =>
    locksOf((key, options) => new RedlockMutex([...clients], key, options)),
};

interface SemaphoreMutex {
  readonly isAcquired: boolean;
  acquire(signal?: AbortSignal): Promise<void>;
  release(): Promise<void>;
}

interface LossFlag {
  isLost: boolean;
}

function locksOf(create: (key: string, options: LockOptions) => SemaphoreMutex): Locks {
  // Each grant has a mutex object of its own, as in the library's examples, because the object stores the state of one holder.
  async function acquire(key: string, options: AcquireOptions, signal?: AbortSignal): Promise<Lease> {
    const lossFlag = { isLost: false };
    const mutex = create(key, optionsOf(options, lossFlag));
    await mutex.acquire(signal);
    return leaseOf(mutex, lossFlag);
  }

  return {
    nameOnServer: (key) => `mutex:${key}`,
    acquire: (key, options) => acquire(key, options),
    hold: (key, ttlMs) => acquire(key, { ttlMs, waitMs: 10_000 }),
    withLock: null,
    isHeld: null,
    acquireUntilAborted: (key, ttlMs, signal) => acquire(key, { ttlMs, waitMs: 60_000 }, signal),
    permit: null,
  };
}

function optionsOf({ ttlMs, waitMs }: AcquireOptions, lossFlag: LossFlag): LockOptions {
  const onLockLost = (): void => {
    lossFlag.isLost = true;
  };
  return { lockTimeout: ttlMs, acquireTimeout: waitMs, onLockLost };
}

function leaseOf(mutex: SemaphoreMutex, lossFlag: LossFlag): Lease {
  return { isHeld: () => mutex.isAcquired && !lossFlag.isLost, release: () => mutex.release() };
}
