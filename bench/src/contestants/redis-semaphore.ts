import { Mutex, Semaphore } from "redis-semaphore";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";
import { permits } from "../run/semaphore-settings.ts";

const settings =
  "defaults (retryInterval 10, renewal at 0.8 of the TTL), but acquireTimeout Infinity, so that it waits";

/** Retries every 10 ms. The library renews by default at 0.8 of the TTL, so each acquire includes the cost of a timer. */
export const redisSemaphore: Contestant = {
  settings,
  open: async ([port]) => {
    const client = connect(port);
    return {
      // One mutex object for each grant, as in the library's examples, because the object is the state of one holder.
      acquire: async (key, ttlMs) => {
        const mutex = new Mutex(client, key, { lockTimeout: ttlMs, acquireTimeout: Infinity });
        await mutex.acquire();
        return () => mutex.release();
      },
      hold: async (key, ttlMs) => {
        let lost = false;
        // By default the library throws inside a timer when it loses a lock, which would end the process.
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

/** The library's semaphore. Each caller acquires one permit. */
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
