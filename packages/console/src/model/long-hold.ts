import type { HoldTimes } from "../api/types.ts";
import { formatDuration } from "./duration.ts";

/** From which age on a hold is long. */
export interface LongHold {
  readonly afterMs: number;
  /** The earlier holds of the key that decide. Absent: its TTL decides. */
  readonly usual?: HoldTimes;
}

/** A hold is long after this many times the p95 of earlier holds. */
const usualFactor = 2;
/** Without earlier holds it is long after this many TTLs, and after 10 minutes. */
const mostTtls = 10;
const leastMs = 600_000;

/** @param ttlMs a lower bound of the TTL of the hold */
export function longHoldOf(ttlMs: number, usual: HoldTimes | undefined): LongHold {
  return usual === undefined
    ? { afterMs: Math.max(mostTtls * ttlMs, leastMs) }
    : { afterMs: Math.max(usualFactor * usual.p95Ms, ttlMs), usual };
}

/** Why a hold is long: "95 % of the last 12 holds took at most 4s". */
export function longText({ afterMs, usual }: LongHold): string {
  return usual === undefined
    ? `longer than ${formatDuration(afterMs)}`
    : `95 % of the last ${usual.count} holds took at most ${formatDuration(usual.p95Ms)}`;
}
