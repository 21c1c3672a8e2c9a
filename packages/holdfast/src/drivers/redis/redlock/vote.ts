import type { Clock, Instant } from "../../../runtime/clock.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Reply } from "../protocol/operation.ts";
import type { NodeReport } from "./majority.ts";
import { readingOf, type ClockReading } from "./clock-reading.ts";

/** A vote that does not count yet is requested again after this time, ms, at the earliest. */
const minRetryMs = 20;

/** The grant of one node. */
export interface Vote extends NodeReport {
  readonly validity: Validity;
  /** The vote is valid for less than the TTL until its first extension, because the node granted the vote by notification. */
  readonly isClaim: boolean;
  readonly isNotified: boolean;
  /** The run of the node that voted. */
  readonly runId: string;
  /** When the vote arrived here, on the scale of `clock.now()`. */
  readonly receivedAt: number;
  /** From when on the vote counts, on the same scale: an earlier holder may rely on its lease until then. */
  readonly countsFrom: number;
  /** The node's clock at the time of the vote. */
  readonly reading: ClockReading;
}

export interface VoteContext {
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly driftFactor: number;
  /** The round of the attempt in which the vote arrives. */
  readonly round: number;
}

/** The validity of a vote by reply starts when its request was sent. */
export function voteByReply(
  { clock, ttlMs, driftFactor, round }: VoteContext,
  [, first, last, , waitMs]: readonly unknown[],
  { sent, runId, serverMicros }: Reply,
): Vote {
  const now = clock.now();
  return {
    first: Number(first),
    last: Number(last),
    round,
    validity: validFrom(sent, ttlMs, 0, driftFactor),
    isClaim: false,
    isNotified: false,
    runId,
    receivedAt: now,
    countsFrom: countsFrom(now, Number(waitMs ?? 0), driftFactor),
    reading: readingOf(serverMicros, sent.now, now),
  };
}

/**
 * @param at when the notification was read
 * @param ageMs the largest possible age of the notification at that time, by the estimate of the node's clock
 */
export function voteByNotification(
  { ttlMs, driftFactor, round }: Omit<VoteContext, "clock">,
  grant: PushedGrant,
  at: Instant,
  ageMs: number,
): Vote {
  const { first, last, runId } = grant;
  const { now } = at;
  const validity = validFrom(at, grant.ttlMs, ageMs, driftFactor);
  const isClaim = grant.ttlMs < ttlMs;
  return {
    first,
    last,
    round,
    validity,
    isClaim,
    isNotified: true,
    runId,
    receivedAt: now,
    countsFrom: countsFrom(now, grant.waitMs, driftFactor),
    reading: readingOf(grant.serverMicros, now - ageMs, now),
  };
}

/**
 * When a vote begins to count.
 * @param waitMs the remaining time until then, by the clock of the node
 */
export function countsFrom(receivedAt: number, waitMs: number, driftFactor: number): number {
  return waitMs > 0 ? receivedAt + waitMs * (1 + driftFactor) : receivedAt;
}

/** When to request a vote again, on the scale of `clock.now()`: a vote that does not count yet is renewed before it expires. */
export function nextRequestFor({ countsFrom, validity, receivedAt }: Vote, clock: Clock): number {
  const halfMs = remainingValidityMs(validity, clock) / 2;
  return countsFrom > receivedAt ? Math.min(countsFrom, receivedAt + Math.max(halfMs, minRetryMs)) : Infinity;
}
