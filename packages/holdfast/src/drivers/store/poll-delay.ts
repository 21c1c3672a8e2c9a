import { jittered, type Random } from "../../runtime/random.ts";

/** How often waiters poll. */
export interface PollLimits {
  /** The first delay between two polls of the first in the queue, ms, before jitter. Later waiters multiply the delay by their rank. */
  readonly initialMs: number;
  /** The longest delay of the first in the queue, and of later waiters, ms. */
  readonly longestMs: { readonly first: number; readonly later: number };
}

const defaultLimits: PollLimits = { initialMs: 1, longestMs: { first: 100, later: 1_000 } };
/** With notifications, or after another waiter of the process, a poll only replaces a lost wake-up. */
const wokenMs = 1_000;
/** A waiter polls this long after the expiry of the first grant, times its position, because no notification reports an expiry. */
const afterExpiryMs = 25;
const jitter = 0.5;

/** A queue entry outlives the longest delay between two polls, and a lost reply. */
export const entryTtlMs = 4_000;

export interface PollState {
  readonly position: number;
  /** Until the first grant expires, ms. */
  readonly remainingMs: number;
  /** How many polls have shown the same position since the last notification. */
  readonly polls: number;
  /** Whether a notification or an earlier waiter of this process wakes the waiter. */
  readonly isWoken: boolean;
}

/** The delay until the next poll of a waiter, ms. The delay doubles while the queue stands still. */
export function pollDelayMs(
  random: Random,
  { position, remainingMs, polls, isWoken }: PollState,
  { initialMs, longestMs }: PollLimits = defaultLimits,
): number {
  const growing = initialMs * (position + 1) * 2 ** Math.min(polls, 10);
  const early = Math.min(growing, position === 0 ? longestMs.first : longestMs.later);
  const delayMs = jittered(random, isWoken ? Math.max(early, wokenMs) : early, jitter);
  return remainingMs > 0 ? Math.min(delayMs, remainingMs + position * afterExpiryMs + 1) : delayMs;
}
