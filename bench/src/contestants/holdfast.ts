import { createLocks, type AcquireOptions, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";

/** How a lock of some kind is asked for. */
type AcquireCall = (key: string, options: AcquireOptions, writes: boolean) => Promise<AcquiredLease>;

interface AcquiredLease {
  readonly signal?: AbortSignal;
  release(): Promise<unknown>;
}

const mutex =
  (locks: Locks): AcquireCall =>
  (key, options) =>
    locks.acquire(key, options);

/** As it comes: callers of one process may hand a lease on in memory, in short runs. */
export const holdfast: Contestant = contestant("defaults, but waitMs Infinity", mutex);

/** Every caller has its own place on the server: strict order of arrival over all processes. */
export const holdfastStrict: Contestant = contestant("handover: false, waitMs Infinity", mutex, {
  handover: false,
});

export function contestant(
  settings: string,
  acquireCall: (locks: Locks) => AcquireCall,
  options?: { handover: false },
): Contestant {
  return {
    settings,
    open: async ([port]) => {
      const acquire = acquireCall(createLocks(redis(connect(port)), options));
      return {
        acquire: async (key, ttlMs, writes) => {
          const lease = await acquire(key, { ttlMs, waitMs: Infinity }, writes);
          return () => lease.release();
        },
        hold: async (key, ttlMs) => {
          const lease = await acquire(key, { ttlMs, waitMs: Infinity }, true);
          return { isLost: () => lease.signal?.aborted === true };
        },
      };
    },
  };
}
