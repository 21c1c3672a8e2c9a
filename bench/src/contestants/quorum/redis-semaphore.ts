import { RedlockMutex } from "redis-semaphore";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";

/** Retries every 10 ms, and gives minority votes back before; renews by default, so that every acquire pays for its timer. */
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
