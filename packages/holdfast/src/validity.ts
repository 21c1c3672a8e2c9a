import type { Clock, Instant } from "./runtime/clock.ts";

/**
 * The end of safe use of a grant, on both local clocks. Over as soon as either clock says so.
 * One object is shared by all leases of a run: a confirmed extension counts for whoever holds the grant then.
 */
export interface Validity {
  /** On the scale of `performance.now()`. */
  until: number;
  untilWall: number;
  /** Until when the engine may keep it by an extension that was asked for and not confirmed, on the scale of `until`. */
  engineUntil?: number;
}

/** What two machines' clocks may disagree by over a TTL: 1 % of it, unless set, and 2 ms. */
export function driftAllowanceMs(ttlMs: number, driftFactor = 0.01): number {
  return ttlMs * driftFactor + 2;
}

/**
 * Validity of a grant of `ttlMs` that the engine gave after `sent`: it counts from the sending, never from the reply.
 * @param ageMs how much of the TTL is known to have passed before `sent`; negative: the TTL began later
 */
export function validFrom(sent: Instant, ttlMs: number, ageMs = 0, driftFactor?: number): Validity {
  const remaining = ttlMs - ageMs - driftAllowanceMs(ttlMs, driftFactor);
  return { until: sent.now + remaining, untilWall: sent.wall + remaining };
}

/** Milliseconds left by the stricter of the two clocks; negative when over. */
export function remainingValidityMs(validity: Validity, clock: Clock): number {
  return Math.min(validity.until - clock.now(), validity.untilWall - clock.wall());
}

/**
 * Takes over a later confirmation. An earlier end never replaces a later one: replies may be reordered. By the stricter clock: after
 * a longer extension and a jump of the wall clock the end that seems later may leave less.
 */
export function extendValidity(validity: Validity, confirmed: Validity, clock: Clock): void {
  if (remainingValidityMs(confirmed, clock) > remainingValidityMs(validity, clock)) {
    validity.until = confirmed.until;
    validity.untilWall = confirmed.untilWall;
  }
}

/** The two clocks count in different grains; more than this is a sleep or a step of the wall clock. */
const clockGrainMs = 20;

/** Whether the wall clock ends it before the monotonic one does: the machine slept. */
export function wasSuspended(validity: Validity, clock: Clock): boolean {
  return validity.until - clock.now() - remainingValidityMs(validity, clock) > clockGrainMs;
}

/** When the engine has forgotten the grant for certain. */
export function engineExpiry({ until, engineUntil = 0 }: Validity): number {
  return Math.max(until, engineUntil);
}
