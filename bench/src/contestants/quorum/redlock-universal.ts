import { createRedlock, IoredisAdapter, type Lock } from "redlock-universal";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";

/** Retries every 200 ms, and releases minority votes before each retry. */
export const redlockUniversal: Contestant = {
  settings: "createRedlock, defaults, but retryAttempts without end, so that it waits",
  open: async (ports) => {
    const adapters = (await connectAll(ports)).map((client) => new IoredisAdapter(client));
    // Lock objects are reused by key, as on one server.
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
