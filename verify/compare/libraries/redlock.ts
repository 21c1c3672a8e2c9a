import Redlock from "redlock";

import type { Client } from "../clients.ts";
import type { Library, Locks } from "../library.ts";
import { holdInsideCallback } from "./keep-inside.ts";
import { retriesWithin } from "./retries.ts";

/** The library's own set-up for one server is a list of one client. */
export const redlock: Library = {
  settings: "defaults (200 ± 100 ms between tries), retryCount for the wait; renewal by using()",
  onServer: (client) => locksOf([client]),
  onQuorum: (clients) => locksOf(clients),
};

function locksOf(clients: readonly Client[]): Locks {
  const locks = new Redlock(clients);
  return {
    nameOnServer: (key) => key,
    acquire: async (key, { ttlMs, waitMs }) => {
      const lock = await locks.acquire([key], ttlMs, { retryCount: retriesWithin(waitMs, 200) });
      return { isHeld: () => lock.expiration > Date.now(), release: () => lock.release() };
    },
    // Inside `using` the work gets only the signal, and not the lock itself.
    hold: (key, ttlMs) =>
      holdInsideCallback((inside) =>
        locks.using([key], ttlMs, (signal) => inside({ isHeld: () => !signal.aborted })),
      ),
    withLock: (key, ttlMs, work) => locks.using([key], ttlMs, work),
    isHeld: null,
    acquireUntilAborted: null,
    permit: null,
  };
}
