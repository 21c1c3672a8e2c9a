import { createLock, IoredisAdapter, LockManager, type Lock } from "redlock-universal";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";
import { severalOf, severalText } from "../run/several-keys.ts";
import { holdInside } from "./using.ts";

/** Retries every 100 ms; `using` extends at 0.8 of the TTL. */
export const redlockUniversal: Contestant = {
  settings: "defaults, but retryAttempts without end, so that it waits; held leases by using()",
  open: async ([port]) => {
    const adapter = new IoredisAdapter(connect(port));
    const create = (key: string, ttl: number): Lock =>
      createLock({ adapter, key, ttl, retryAttempts: Number.MAX_SAFE_INTEGER });

    // Lock objects are reused by key, because the first use of each sends a PING, which is not part of an acquisition.
    const handles = new Map<string, Lock>();
    const lockOf = (key: string, ttlMs: number): Lock => {
      const lock = handles.get(key) ?? create(key, ttlMs);
      handles.set(key, lock);
      return lock;
    };

    return {
      acquire: async (key, ttlMs) => {
        const lock = lockOf(key, ttlMs);
        const handle = await lock.acquire();
        return () => lock.release(handle);
      },
      hold: (key, ttlMs) => holdInside((routine) => create(key, ttlMs).using(routine)),
    };
  },
};

/** The library's batch call, which locks all keys or none. */
export const redlockUniversalSeveral: Contestant = {
  settings: `LockManager.acquireBatch, ${severalText}, defaults`,
  open: async ([port]) => {
    const manager = new LockManager({ nodes: [new IoredisAdapter(connect(port))] });
    return {
      acquire: async (key, ttl) => {
        const handles = await manager.acquireBatch(severalOf(key), { ttl });
        return () => manager.releaseBatch(handles);
      },
      hold: null,
    };
  },
};
