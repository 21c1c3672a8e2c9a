import type { HoldTimes } from "../api/types.ts";
import { formatDuration } from "./duration.ts";

/** From which age on a hold is long. */
export interface LongHold {
  readonly afterMs: number;
  /** The earlier holds of the key that decide. Absent: its TTL decides. */
  readonly usual?: HoldTimes;
  /** Whether a caller waits for the end of the hold. */
  readonly isAwaited: boolean;
}

/** A hold is long after this many times the p95 of earlier holds. */
const usualFactor = 2;
/** Without earlier holds it is long after this many TTLs, and after this time. */
const unknown = { ttls: 10, leastMs: 600_000 };
/** While a caller waits, it is long sooner. */
const unknownAwaited = { ttls: 2, leastMs: 60_000 };

/**
 * @param ttlMs a lower bound of the TTL of the hold
 * @param isAwaited whether a caller waits for the end of the hold
 */
export function longHoldOf(ttlMs: number, usual: HoldTimes | undefined, isAwaited: boolean): LongHold {
  if (usual !== undefined) {
    return { afterMs: Math.max(usualFactor * usual.p95Ms, ttlMs), usual, isAwaited };
  }
  const { ttls, leastMs } = isAwaited ? unknownAwaited : unknown;
  return { afterMs: Math.max(ttls * ttlMs, leastMs), isAwaited };
}

/** Why a hold is long: "95 % of the last 12 holds took at most 4s". */
export function longText({ afterMs, usual, isAwaited }: LongHold): string {
  if (usual !== undefined) {
    return `95 % of the last ${usual.count} holds took at most ${formatDuration(usual.p95Ms)}`;
  }
  return `longer than ${formatDuration(afterMs)}${isAwaited ? " while others wait" : ""}`;
}
