import { jittered, type Random } from "../../random.ts";

const pollMs = 5_000;
const shortestPollMs = 50;
const longestPauseMs = 1_000;
/** Those who may poll at the same moment keep this distance. */
const spacingMs = 20;

/** A timer that runs later than this tells of our own event loop, which may not have read answers either. */
export const lateMs = 5;
/** So long an answer is waited for then, which may be there already. */
export const graceMs = 1;

/**
 * When a queued waiter asks again although nobody told it to: the first three places when the holder's TTL is over,
 * everybody after 5 s, never sooner than 50 ms.
 * @param remainingMs of the holder's TTL; negative: it has none, or only the first three are told
 */
export function pollDelay(random: Random, position: number, remainingMs: number): number {
  if (remainingMs < 0) {
    return pollMs;
  }
  const spread = (position + random.fraction()) * spacingMs;
  return Math.min(pollMs, Math.max(shortestPollMs, remainingMs + spread));
}

/** When a waiter without a place in the queue asks again: nobody would tell it. */
export function impatientDelay(random: Random, attempts: number, remainingMs: number): number {
  const pauseMs = Math.min(longestPauseMs, 25 * 2 ** Math.min(attempts, 6));
  const untilFreeMs = remainingMs < 0 ? pauseMs : remainingMs;
  return Math.max(shortestPollMs, jittered(random, Math.min(pauseMs, untilFreeMs), 0.5));
}

/** When what failed is tried again. */
export function backoffDelay(random: Random, failures: number): number {
  return jittered(random, Math.min(longestPauseMs, shortestPollMs * 2 ** Math.min(failures, 6)), 0.5);
}
