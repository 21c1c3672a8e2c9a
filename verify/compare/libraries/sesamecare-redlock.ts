import { Redlock } from "@sesamecare-oss/redlock";

import type { Client } from "../clients.ts";
import type { Library, Locks } from "../library.ts";
import { holdInsideCallback } from "./keep-inside.ts";
import { retriesWithin } from "./retries.ts";

/** A fork of redlock 5, with its defaults. */
export const sesamecare: Library = {
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
    // Unlike redlock, the fork passes the current lock to the work. The `expiration` of that lock is a deadline beside the signal.
    hold: (key, ttlMs) =>
      holdInsideCallback((inside) =>
        locks.using([key], ttlMs, (signal, context) =>
          inside({ isHeld: () => !signal.aborted && context.lock.expiration > Date.now() }),
        ),
      ),
    withLock: (key, ttlMs, work) => locks.using([key], ttlMs, work),
    isHeld: null,
    acquireUntilAborted: null,
    permit: null,
  };
}
