import { createLock, createRedlock, IoredisAdapter, type Lock } from "redlock-universal";

import type { AcquireOptions, Library, Locks } from "../library.ts";
import { holdInsideCallback } from "./keep-inside.ts";
import { retriesWithin } from "./retries.ts";

export const redlockUniversal: Library = {
  settings:
    "defaults (100 ms between tries, on a quorum 200), retryAttempts for the wait; renewal by using()",
  onServer: (client) => {
    const adapter = new IoredisAdapter(client);
    return locksOf(100, (key, ttl, retryAttempts) => createLock({ adapter, key, ttl, ...retryAttempts }));
  },
  onQuorum: (clients) => {
    const adapters = clients.map((client) => new IoredisAdapter(client));
    return locksOf(200, (key, ttl, retryAttempts) => createRedlock({ adapters, key, ttl, ...retryAttempts }));
  },
};

type Retries = { readonly retryAttempts?: number };

function locksOf(
  retryDelayMs: number,
  create: (key: string, ttlMs: number, retries: Retries) => Lock,
): Locks {
  const withTimeout = ({ waitMs }: AcquireOptions): Retries => ({
    retryAttempts: retriesWithin(waitMs, retryDelayMs),
  });
  return {
    nameOnServer: (key) => key,
    acquire: async (key, options) => {
      const lock = create(key, options.ttlMs, withTimeout(options));
      const handle = await lock.acquire();
      const isHeld = (): boolean => handle.acquiredAt + handle.ttl > Date.now();
      return { isHeld, release: () => lock.release(handle) };
    },
    hold: (key, ttlMs) =>
      holdInsideCallback((inside) =>
        create(key, ttlMs, {}).using((signal) => inside({ isHeld: () => !signal.aborted })),
      ),
    withLock: (key, ttlMs, work) => create(key, ttlMs, {}).using(work),
    isHeld: (key) => create(key, 30_000, {}).isLocked(key),
    acquireUntilAborted: null,
    permit: null,
  };
}
