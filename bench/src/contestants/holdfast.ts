import { createLocks, type AcquireOptions, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { connect } from "../run/client.ts";
import type { Contestant } from "./contestant.ts";

/** How a lock of some kind is asked for. */
type Take = (key: string, options: AcquireOptions, writes: boolean) => Promise<Taken>;

interface Taken {
  readonly signal?: AbortSignal;
  release(): Promise<unknown>;
}

const mutex =
  (locks: Locks): Take =>
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
  taking: (locks: Locks) => Take,
  options?: { handover: false },
): Contestant {
  return {
    settings,
    open: async ([port]) => {
      const take = taking(createLocks(redis(connect(port)), options));
      return {
        acquire: async (key, ttlMs, writes) => {
          const lease = await take(key, { ttlMs, waitMs: Infinity }, writes);
          return () => lease.release();
        },
        hold: async (key, ttlMs) => {
          const lease = await take(key, { ttlMs, waitMs: Infinity }, true);
          return { isLost: () => lease.signal?.aborted === true };
        },
      };
    },
  };
}
