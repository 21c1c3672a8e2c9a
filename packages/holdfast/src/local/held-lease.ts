import type { LeaseState } from "../lease/lease-state.ts";
import type { HeldKind } from "../lock-state.ts";
import type { Clock } from "../runtime/clock.ts";
import { withJson } from "../runtime/plain-values.ts";

/** One key of a lease that this process holds, as plain values without the token. `JSON.stringify` writes the fencing token as text. */
export interface HeldLease {
  readonly key: string;
  /** The kind at the engine. A lease of several keys has one entry per key, and nested reentrant leases have one together. */
  readonly kind: HeldKind;
  /** The mode of a read-write lock. */
  readonly mode?: "read" | "write";
  /** The permits of a semaphore. */
  readonly permits?: number;
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly fencingToken: bigint;
  /** When this process received the lease, milliseconds since 1970 by its own wall clock. */
  readonly since: number;
  /** The time since this process received the lease, ms, by its monotonic clock. */
  readonly heldMs: number;
  /** The TTL of each renewal, ms. */
  readonly ttlMs: number;
  /** The remaining time of safe use, ms. */
  readonly remainingMs: number;
  /** How many callers of this process wait in memory for the key. */
  readonly localWaiters: number;
}

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
