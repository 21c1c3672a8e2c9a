import { jittered, type Random } from "../../runtime/random.ts";

/** The delays between two polls of a waiter, ms, before jitter. */
const firstMs = { initial: 25, max: 100 };
const laterMs = { perPosition: 50, max: 1_000 };
/** With notifications a poll only replaces a lost notification. */
const notifiedMs = 1_000;
/** A waiter polls this long after the expiry of the first grant, times its position, because no notification reports an expiry. */
const afterExpiryMs = 25;
const jitter = 0.5;

/** A queue entry outlives the longest delay between two polls, and a lost reply. */
export const entryTtlMs = 4_000;

export interface PollState {
  readonly position: number;
  /** Until the first grant expires, ms. */
  readonly remainingMs: number;
  /** How many polls the waiter has sent since its last notification. */
  readonly polls: number;
  readonly isNotified: boolean;
}

/** The delay until the next poll of a waiter, ms. The first in the queue polls more often than later waiters. */
export function pollDelayMs(random: Random, { position, remainingMs, polls, isNotified }: PollState): number {
  const early =
    position === 0
      ? Math.min(firstMs.max, firstMs.initial * 2 ** Math.min(polls, 10))
      : Math.min(laterMs.max, laterMs.perPosition * (position + 1));
  const delayMs = jittered(random, isNotified ? Math.max(early, notifiedMs) : early, jitter);
  return remainingMs > 0 ? Math.min(delayMs, remainingMs + position * afterExpiryMs + 1) : delayMs;
}
