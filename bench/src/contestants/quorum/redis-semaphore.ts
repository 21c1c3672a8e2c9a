import { RedlockMutex } from "redis-semaphore";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";

/**
 * Retries every 10 ms, and releases minority votes before each retry. The library renews by default, so each acquire includes the
 * cost of a timer.
 */
export const redisSemaphore: Contestant = {
  settings:
    "RedlockMutex, defaults (retryInterval 10, renewal at 0.8 of the TTL), but acquireTimeout Infinity, so that it waits",
  open: async (ports) => {
    const clients = await connectAll(ports);
    return {
      acquire: async (key, ttlMs) => {
        const mutex = new RedlockMutex(clients, key, { lockTimeout: ttlMs, acquireTimeout: Infinity });
        await mutex.acquire();
        return () => mutex.release();
      },
      hold: null,
    };
  },
};
