import type { LossReason } from "./errors.ts";
import type { Clock, Instant } from "./runtime/clock.ts";

/**
 * The end of safe use of a grant, on both local clocks. The grant is valid while neither clock has reached its end.
 * All leases on one grant share one object, so a confirmed extension counts for the present lease.
 */
export interface Validity {
  /** The end on the scale of `performance.now()`. */
  until: number;
  /** The end on the wall clock, milliseconds since 1970. */
  untilWall: number;
  /** The time until which unconfirmed extensions may keep the grant at the engine, on the scale of `until`. */
  engineUntil?: number;
  /** The loss of the grant, if another thread has found it. */
  readonly loss?: LossReason | undefined;
}

/** The allowance for clock drift between two machines over a TTL: 1 % of the TTL by default, and 2 ms. */
export function driftAllowanceMs(ttlMs: number, driftFactor = 0.01): number {
  return ttlMs * driftFactor + 2;
}

/**
 * The validity of a grant with `ttlMs`. It counts from the sending of the request, never from the reply.
 * @param ageMs how much of the TTL is known to have passed before `sent`; negative: the TTL began after `sent`
 */
export function validFrom(sent: Instant, ttlMs: number, ageMs = 0, driftFactor?: number): Validity {
  const remaining = ttlMs - ageMs - driftAllowanceMs(ttlMs, driftFactor);
  return { until: sent.now + remaining, untilWall: sent.wall + remaining };
}

/** The remaining validity by the stricter clock, ms; negative after the end. */
export function remainingValidityMs(validity: Validity, clock: Clock): number {
  return Math.min(validity.until - clock.now(), validity.untilWall - clock.wall());
}

/** The end of the validity by the stricter clock, on the scale of `clock.now()`. The clocks differ after the machine has slept. */
export function validityEnd({ until, untilWall }: Validity, { now, wall }: Instant): number {
  return now + Math.min(until - now, untilWall - wall);
}

/**
 * Applies a confirmed extension. An earlier end never replaces a later one, because replies may be reordered.
 * The stricter clock decides: after a jump of the wall clock, the end that is later on one clock may leave less time.
 */
export function extendValidity(validity: Validity, confirmed: Validity, clock: Clock): void {
  if (remainingValidityMs(confirmed, clock) > remainingValidityMs(validity, clock)) {
    validity.until = confirmed.until;
    validity.untilWall = confirmed.untilWall;
  }
}

/** The clocks have different resolutions. A larger difference than this is a sleep, or a step of the wall clock. */
const clockGrainMs = 20;

/** Whether the wall clock ends the validity before the monotonic clock does, because the machine slept. */
export function wasSuspended(validity: Validity, clock: Clock): boolean {
  return validity.until - clock.now() - remainingValidityMs(validity, clock) > clockGrainMs;
}

/** The end of the grant, as the client counts it. With the drift of the clocks the engine may keep the grant slightly longer. */
export function engineExpiry({ until, engineUntil = 0 }: Validity): number {
  return Math.max(until, engineUntil);
}
