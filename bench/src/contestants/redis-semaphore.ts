import { Mutex, Semaphore } from "redis-semaphore";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";
import { permits } from "../run/semaphore-settings.ts";

const settings =
  "defaults (retryInterval 10, renewal at 0.8 of the TTL), but acquireTimeout Infinity, so that it waits";

/** Retries every 10 ms; renews by default, at 0.8 of the TTL, so that every acquire pays for its timer. */
export const redisSemaphore: Contestant = {
  settings,
  open: async ([port]) => {
    const client = connect(port);
    return {
      // A mutex object a grant, as in its examples: the object is the state of one holder.
      acquire: async (key, ttlMs) => {
        const mutex = new Mutex(client, key, { lockTimeout: ttlMs, acquireTimeout: Infinity });
        await mutex.acquire();
        return () => mutex.release();
      },
      hold: async (key, ttlMs) => {
        let lost = false;
        // The default for a loss is to throw inside a timer, which would end the process.
        const onLockLost = (): void => {
          lost = true;
        };
        const mutex = new Mutex(client, key, { lockTimeout: ttlMs, acquireTimeout: Infinity, onLockLost });
        await mutex.acquire();
        return { isLost: () => lost || !mutex.isAcquired };
      },
    };
  },
};

/** Its semaphore; each takes one of its permits. */
export const redisSemaphoreSemaphore: Contestant = {
  settings: `Semaphore, limit ${permits}, ${settings}`,
  open: async ([port]) => {
    const client = connect(port);
    return {
      acquire: async (key, ttlMs) => {
        const options = { lockTimeout: ttlMs, acquireTimeout: Infinity };
        const semaphore = new Semaphore(client, key, permits, options);
        await semaphore.acquire();
        return () => semaphore.release();
      },
      hold: null,
    };
  },
};
