import { createLocks } from "holdfast";
import { redlock } from "holdfast/redis";
import { connect } from "../../client.ts";
import type { Contestant } from "../../contestant.ts";
import { longestTtlMs } from "../../quorum-settings.ts";

/** As it comes, but for the largest TTL, which is that of the leases: so long the restart guard keeps fresh nodes from voting. */
export const holdfast: Contestant = {
  settings: `defaults, but maxTtlMs ${longestTtlMs}, waitMs Infinity`,
  open: async (ports) => {
    const locks = createLocks(redlock(ports.map(connect), { maxTtlMs: longestTtlMs }));
    return {
      acquire: async (key, ttlMs) => {
        const lease = await locks.acquire(key, { ttlMs, waitMs: Infinity });
        return () => lease.release();
      },
      hold: null,
    };
  },
};
