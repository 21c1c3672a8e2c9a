import type { Clock, Moment } from "./runtime/clock.ts";

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
export function driftMs(ttlMs: number, driftFactor = 0.01): number {
  return ttlMs * driftFactor + 2;
}

/**
 * Validity of a grant of `ttlMs` that the engine gave after `sent`: it counts from the sending, never from the reply.
 * @param ageMs how much of the TTL is known to have passed before `sent`; negative: the TTL began later
 */
export function validFrom(sent: Moment, ttlMs: number, ageMs = 0, driftFactor?: number): Validity {
  const left = ttlMs - ageMs - driftMs(ttlMs, driftFactor);
  return { until: sent.now + left, untilWall: sent.wall + left };
}

/** Milliseconds left by the stricter of the two clocks; negative when over. */
export function leftOf(validity: Validity, clock: Clock): number {
  return Math.min(validity.until - clock.now(), validity.untilWall - clock.wall());
}

/**
 * Takes over a later confirmation. An earlier end never replaces a later one: replies may be reordered. By the stricter clock: after
 * a longer extension and a jump of the wall clock the end that seems later may leave less.
 */
export function prolong(validity: Validity, confirmed: Validity, clock: Clock): void {
  if (leftOf(confirmed, clock) > leftOf(validity, clock)) {
    validity.until = confirmed.until;
    validity.untilWall = confirmed.untilWall;
  }
}

/** The two clocks count in different grains; more than this is a sleep or a step of the wall clock. */
const clockGrainMs = 20;

/** Whether the wall clock ends it before the monotonic one does: the machine slept. */
export function endsEarly(validity: Validity, clock: Clock): boolean {
  return validity.until - clock.now() - leftOf(validity, clock) > clockGrainMs;
}

/** When the engine has forgotten the grant for certain. */
export function engineEnd({ until, engineUntil = 0 }: Validity): number {
  return Math.max(until, engineUntil);
}
