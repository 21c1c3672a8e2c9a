import type { Holder, Owner } from "../api/types.ts";
import type { Row } from "./row.ts";

/** One grant to break, as it was shown. */
export interface BreakTarget {
  readonly key: string;
  readonly owner: string;
  readonly fencingToken: string;
  /** Since when the grant is held, ms since 1970 by the browser's clock. */
  readonly since: number | undefined;
  readonly isHeldExact: boolean;
  readonly waiters: number;
  /** The first waiter, if known. */
  readonly next?: string | undefined;
  /** Whether the holder may be alive: it is not late, or its own TTL is not known because it is one of several holders. */
  readonly isAlive: boolean;
  /** Whether the holder has not renewed in time. */
  readonly isLate: boolean;
}

/** The targets of a row: one for each holder with a fencing token. */
export function targetsOf(row: Row, holders: readonly Holder[] = row.lock.holders): BreakTarget[] {
  const [first, ...others] = row.lock.holders;
  const isLate = row.state === "late" && others.length === 0;
  return holders.flatMap((holder) => {
    const { owner, fencingToken } = holder;
    if (fencingToken === undefined) return [];
    return {
      key: row.key,
      owner,
      fencingToken,
      since:
        holder.heldMs === undefined ? (holder === first ? row.since : undefined) : row.at - holder.heldMs,
      isHeldExact: holder.heldMs !== undefined || row.isSinceExact,
      waiters: row.lock.waiterCount,
      next: row.lock.waiters[0]?.owner,
      isAlive: !isLate,
      isLate,
    };
  });
}

/** @param at when the owner was reported */
export function targetsOfOwner({ owner, holds, answered }: Owner, at: number): BreakTarget[] {
  return holds.flatMap(({ key, fencingToken, heldMs, localWaiters: waiters = 0 }) => {
    if (fencingToken === undefined) return [];
    return [
      {
        key,
        owner,
        fencingToken,
        since: heldMs === undefined ? undefined : at - heldMs,
        isHeldExact: true,
        waiters,
        isAlive: answered,
        isLate: false,
      },
    ];
  });
}
