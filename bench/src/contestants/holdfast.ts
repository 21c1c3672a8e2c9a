import { createLocks, type AcquireOptions, type Lease, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { connect } from "../client.ts";
import type { Contestant } from "../contestant.ts";
import { permits } from "../semaphore-settings.ts";

/** How a lock of some kind is asked for. */
type Take = (key: string, options: AcquireOptions, writes: boolean) => Promise<Lease>;

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

/** Readers share it; all stand in one queue. */
export const holdfastReadWrite: Contestant = contestant(
  "readWrite, defaults, but waitMs Infinity",
  (locks) => {
    const lockOf = kept((key) => locks.readWrite(key));
    return (key, options, writes) => lockOf(key)[writes ? "write" : "read"].acquire(options);
  },
);

/** Each takes one of its permits. */
export const holdfastSemaphore: Contestant = contestant(
  `semaphore, limit ${permits}, defaults, but waitMs Infinity`,
  (locks) => {
    const lockOf = kept((key) => locks.semaphore(key, { limit: permits }));
    return (key, options) => lockOf(key).acquire(options);
  },
);

function contestant(
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
          return { isLost: () => lease.signal.aborted };
        },
      };
    },
  };
}

/** One for each key, as its users have it. */
function kept<Lock>(create: (key: string) => Lock): (key: string) => Lock {
  const locks = new Map<string, Lock>();
  return (key) => {
    const lock = locks.get(key) ?? create(key);
    locks.set(key, lock);
    return lock;
  };
}
