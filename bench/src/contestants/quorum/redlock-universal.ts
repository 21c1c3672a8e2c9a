import { createRedlock, IoredisAdapter, type Lock } from "redlock-universal";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";

/** Retries every 200 ms, and gives minority votes back before. */
export const redlockUniversal: Contestant = {
  settings: "createRedlock, defaults, but retryAttempts without end, so that it waits",
  open: async (ports) => {
    const adapters = (await connectAll(ports)).map((client) => new IoredisAdapter(client));
    // Kept by key, as with one server.
    const handles = new Map<string, Lock>();
    const lockOf = (key: string, ttl: number): Lock => {
      const retryAttempts = Number.MAX_SAFE_INTEGER;
      const lock = handles.get(key) ?? createRedlock({ adapters, key, ttl, retryAttempts });
      handles.set(key, lock);
      return lock;
    };

    return {
      acquire: async (key, ttlMs) => {
        const lock = lockOf(key, ttlMs);
        const handle = await lock.acquire();
        return () => lock.release(handle);
      },
      hold: null,
    };
  },
};
