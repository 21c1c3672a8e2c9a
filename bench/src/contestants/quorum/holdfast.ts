import { createLocks } from "holdfast";
import { redlock } from "holdfast/redis";
import { connectAll } from "../../run/client.ts";
import type { Contestant } from "../contestant.ts";
import { longestTtlMs } from "../../run/quorum-settings.ts";

/**
 * The defaults, except that `maxTtlMs` is the TTL of the leases, because the restart guard keeps fresh nodes from voting for at
 * least `maxTtlMs`.
 */
export const holdfast: Contestant = contestant({});

/** For distant nodes, because docs/redlock.md requires a timeout well above the round trip. */
export const holdfastFar: Contestant = contestant({ nodeTimeoutMs: 1_000 });

function contestant(options: { nodeTimeoutMs?: number }): Contestant {
  const own = Object.entries(options).map(([name, value]) => `${name} ${value}, `);
  return {
    settings: `defaults, but maxTtlMs ${longestTtlMs}, ${own.join("")}waitMs Infinity`,
    open: async (ports) => {
      const driver = redlock(await connectAll(ports), { maxTtlMs: longestTtlMs, ...options });
      const locks = createLocks(driver);
      return {
        acquire: async (key, ttlMs) => {
          const lease = await locks.acquire(key, { ttlMs, waitMs: Infinity });
          return () => lease.release();
        },
        hold: null,
      };
    },
  };
}
