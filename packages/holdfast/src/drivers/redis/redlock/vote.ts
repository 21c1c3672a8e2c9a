import type { Clock } from "../../../runtime/clock.ts";
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
  /** Of a message: for less than the TTL, until it is extended. */
  readonly isClaim: boolean;
  readonly isNotified: boolean;
  /** Which run of the node gave it. */
  readonly runId: string;
  /** When we heard of it, on the scale of `clock.now()`. */
  readonly receivedAt: number;
  /** From when on it counts, on the same scale: a holder before may believe in its lease until then. */
  readonly countsFrom: number;
  /** The node's clock as it voted. */
  readonly reading: ClockReading;
}

export interface VoteContext {
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly driftFactor: number;
  /** In which round of its bid it is heard. */
  readonly round: number;
}

/** Counts from the moment that it was asked for. */
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

/** @param ageMs how long ago it may have been given, by what is known of the node's time */
export function voteByNotification(
  { clock, ttlMs, driftFactor, round }: VoteContext,
  grant: PushedGrant,
  ageMs: number,
): Vote {
  const { first, last, runId } = grant;
  const now = clock.now();
  const validity = validFrom({ now, wall: clock.wall() }, grant.ttlMs, ageMs, driftFactor);
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

/** @param waitMs what the node said is left until then, by its own clock */
export function countsFrom(receivedAt: number, waitMs: number, driftFactor: number): number {
  return waitMs > 0 ? receivedAt + waitMs * (1 + driftFactor) : receivedAt;
}

/** When to request a vote again, on the scale of `clock.now()`: a vote that does not count yet is renewed before it expires. */
export function nextRequestFor({ countsFrom, validity, receivedAt }: Vote, clock: Clock): number {
  const halfMs = remainingValidityMs(validity, clock) / 2;
  return countsFrom > receivedAt ? Math.min(countsFrom, receivedAt + Math.max(halfMs, minRetryMs)) : Infinity;
}
