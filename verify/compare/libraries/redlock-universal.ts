import { createLock, createRedlock, IoredisAdapter, type Lock } from "redlock-universal";

import type { AcquireOptions, Library, Locks } from "../library.ts";
import { keepInside } from "./keep-inside.ts";
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
  const within = ({ waitMs }: AcquireOptions): Retries => ({
    retryAttempts: retriesWithin(waitMs, retryDelayMs),
  });
  return {
    nameOnServer: (key) => key,
    acquire: async (key, options) => {
      const lock = create(key, options.ttlMs, within(options));
      const handle = await lock.acquire();
      const isMine = (): boolean => handle.acquiredAt + handle.ttl > Date.now();
      return { isMine, release: () => lock.release(handle) };
    },
    keep: (key, ttlMs) =>
      keepInside((inside) =>
        create(key, ttlMs, {}).using((signal) => inside({ isMine: () => !signal.aborted })),
      ),
    run: (key, ttlMs, work) => create(key, ttlMs, {}).using(work),
    isHeld: (key) => create(key, 30_000, {}).isLocked(key),
    acquireUntilAborted: null,
    permit: null,
  };
}
