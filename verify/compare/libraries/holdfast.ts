import { createLocks, type Driver, type Lease as HoldfastLease } from "holdfast";
import { redis, redlock } from "holdfast/redis";

import type { Lease, Library, Locks } from "../library.ts";

export const holdfast: Library = {
  settings: "defaults",
  onServer: (client) => locksOf(redis(client)),
  onQuorum: (clients) => locksOf(redlock(clients)),
};

function locksOf(driver: Driver): Locks {
  const locks = createLocks(driver);
  return {
    nameOnServer: (key) => `lock:${key}`,
    acquire: async (key, options) => leaseOf(await locks.acquire(key, options)),
    hold: async (key, ttlMs) => leaseOf(await locks.acquire(key, { ttlMs })),
    withLock: (key, ttlMs, work) => locks.withLock(key, { ttlMs }, work),
    isHeld: async (key) => (await locks.inspect(key)).holders.length > 0,
    acquireUntilAborted: async (key, ttlMs, signal) =>
      leaseOf(await locks.acquire(key, { ttlMs, signal, waitMs: 60_000 })),
    permit: async (key, { limit, ...options }) =>
      leaseOf(await locks.semaphore(key, { limit }).acquire(options)),
  };
}

function leaseOf(lease: HoldfastLease): Lease {
  return {
    isHeld: () => {
      try {
        lease.throwIfLost();
        return true;
      } catch {
        return false;
      }
    },
    release: () => lease.release(),
  };
}
