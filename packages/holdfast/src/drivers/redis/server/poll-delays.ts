import { jittered, type Random } from "../../../runtime/random.ts";

const pollMs = 5_000;
const minPollMs = 50;
const maxPauseMs = 1_000;
/** Those who may poll at the same moment keep this distance. */
const spacingMs = 20;
/** Instead of what is left of the holder's TTL: who is far behind is not told it at first. */
const notReported = -3;

/** A timer that runs later than this shows that the process itself was late, and that a reply may have arrived unread. */
export const lateTimerMs = 5;

/**
 * When a queued waiter asks again although nobody told it to: one place after the other when the holder's TTL is over,
 * everybody after 5 s, never sooner than 50 ms. Nobody knows that those before it have gone since it asked, so not only
 * the first places do.
 * @param remainingMs of the holder's TTL; negative: it has none, or that is not told
 * @param ttlMs the waiter's own, which the holder's is taken to be until it is told
 */
export function queuedPollDelay(
  random: Random,
  position: number,
  remainingMs: number,
  ttlMs: number,
): number {
  const waitMs = remainingMs === notReported ? ttlMs : remainingMs;
  if (waitMs < 0) {
    return pollMs;
  }
  const spread = (position + random.nextFloat()) * spacingMs;
  return Math.min(pollMs, Math.max(minPollMs, waitMs + spread));
}

/** When a waiter without a place in the queue asks again: nobody would tell it. */
export function unqueuedPollDelay(random: Random, attempts: number, remainingMs: number): number {
  const pauseMs = Math.min(maxPauseMs, 25 * 2 ** Math.min(attempts, 6));
  const untilFreeMs = remainingMs < 0 ? pauseMs : remainingMs;
  return Math.max(minPollMs, jittered(random, Math.min(pauseMs, untilFreeMs), 0.5));
}
