import { createLocks, type AcquireOptions, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { connect } from "../run/client.ts";
import type { Contestant, Session } from "./contestant.ts";

/** Acquires a lock of one kind. */
type AcquireCall = (key: string, options: AcquireOptions, writes: boolean) => Promise<AcquiredLease>;

interface AcquiredLease {
  readonly signal?: AbortSignal;
  release(): Promise<unknown>;
}

export const mutex =
  (locks: Locks): AcquireCall =>
  (key, options) =>
    locks.acquire(key, options);

/** The defaults: a holder may hand over its lease in memory to the next caller of its process, for a limited number of turns. */
export const holdfast: Contestant = contestant("defaults, but waitMs Infinity", mutex);

/** Without handover, each caller has its own queue entry on the server, so all processes are served in the order of arrival. */
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
    open: async ([port]) => sessionOf(acquireCall(createLocks(redis(connect(port)), options))),
  };
}

export function sessionOf(acquire: AcquireCall): Session {
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
}
