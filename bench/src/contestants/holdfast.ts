import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { connect } from "../client.ts";
import type { Contestant } from "../contestant.ts";

/** As it comes: callers of one process may hand a lease on in memory, in short runs. */
export const holdfast: Contestant = contestant("defaults, but waitMs Infinity");

/** Every caller has its own place on the server: strict order of arrival over all processes. */
export const holdfastStrict: Contestant = contestant("handover: false, waitMs Infinity", { handover: false });

function contestant(settings: string, options?: { handover: false }): Contestant {
  return {
    settings,
    open: async ([port]) => {
      const locks = createLocks(redis(connect(port)), options);
      return {
        acquire: async (key, ttlMs) => {
          const lease = await locks.acquire(key, { ttlMs, waitMs: Infinity });
          return () => lease.release();
        },
        hold: async (key, ttlMs) => {
          const lease = await locks.acquire(key, { ttlMs, waitMs: Infinity });
          return { isLost: () => lease.signal.aborted };
        },
      };
    },
  };
}
