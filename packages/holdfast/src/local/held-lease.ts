import type { LeaseState } from "../lease/lease-state.ts";
import type { HeldLease } from "../lock-state.ts";
import type { Clock } from "../runtime/clock.ts";
import { withJson } from "../runtime/plain-values.ts";

/** The public values of a lease. */
export function heldLease(lease: LeaseState, clock: Clock, localWaiters: number): HeldLease {
  const { key, lockMode, ttlMs, fencingToken } = lease;
  const heldMs = clock.now() - lease.heldFrom;
  const { owner, reason, labels, remainingMs = 0 } = lease.describe();
  return withJson({
    key,
    kind: lockMode?.kind ?? "mutex",
    ...(lockMode?.kind === "read-write" && { mode: lockMode.mode }),
    ...(lockMode?.kind === "semaphore" && { permits: lockMode.permits }),
    owner,
    ...(reason !== undefined && { reason }),
    ...(labels && { labels }),
    fencingToken,
    since: clock.wall() - heldMs,
    heldMs,
    ttlMs,
    remainingMs,
    localWaiters,
  });
}
