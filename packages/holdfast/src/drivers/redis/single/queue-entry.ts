import type { AcquireRequest } from "../../../driver.ts";
import type { GrantAgeEstimator } from "../server/grant-age.ts";
import { queueEntryExpiry, queueTtlMs } from "../server/pending-release.ts";
import type { RedisServer } from "../server/server.ts";

/**
 * A queue entry after its token: validity of the first grant, fencing count, deadline by the server's clock, channel, TTL. A request
 * writes it once, because the entry in the server's queue cannot be changed.
 */
export function queueEntryOf(
  { ttlMs, fencingCount }: AcquireRequest,
  server: RedisServer,
  claimMs: number,
  remainingMs: number,
): string {
  // The server compares the deadline with its own clock, and must not skip a waiter whose clock is slower. So the error is added.
  const deadline =
    remainingMs === Infinity
      ? 0
      : Math.ceil(
          server.serverClock.micros() / 1000 + remainingMs + server.serverClock.errorAfterMs(remainingMs),
        );
  return `${Math.min(ttlMs, claimMs)} ${fencingCount} ${deadline} ${server.channelKind} ${ttlMs}`;
}

/** The latest time at which a grant or queue entry of the request may still exist, on the scale of `clock.now()`. */
export function residueExpiry(server: RedisServer, now: number, deadline: number, ttlMs: number): number {
  // The entry's deadline is too late by the error of the estimate, and the server's clock may lag by as much again.
  const lateMs = 2 * server.serverClock.errorAfterMs(Math.max(0, deadline - now));
  const entryEnd = deadline + Math.min(lateMs, queueTtlMs);
  return Math.max(now + ttlMs, queueEntryExpiry(now, entryEnd));
}

/** Whether a queue entry is requested, as the script expects it. With a fresh sample of the server's time the reply needs no run ID. */
export function queueArgument(
  isQueueing: boolean,
  ignoresQueueLimit: boolean,
  grantAges: GrantAgeEstimator,
): string {
  if (!isQueueing) {
    return "0";
  }
  const { isFresh } = grantAges;
  return ignoresQueueLimit ? (isFresh ? "4" : "3") : isFresh ? "2" : "1";
}
