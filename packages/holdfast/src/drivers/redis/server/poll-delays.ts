import { jittered, type Random } from "../../../runtime/random.ts";
import { clientIdOf } from "../protocol/token.ts";

const pollMs = 5_000;
const minPollMs = 50;
const maxPauseMs = 1_000;
/** With jitter 500 ms, and about three polls a second. */
const maxForeignPollMs = 333;
/** The distance between the polls of neighbouring waiters. */
const spacingMs = 20;
/** The server reports this value instead of the holder's remaining TTL to a waiter far from the head of the queue. */
const notReported = -3;

/** A timer that runs later than this shows that the process itself was late, and that a reply may have arrived unread. */
export const lateTimerMs = 5;

/**
 * The delay until a queued waiter polls. Waiters poll in the order of their positions after the holder's TTL, at the latest after 5 s
 * and never sooner than 50 ms. Every waiter polls, because the waiters before it may have been removed since its last request.
 * @param remainingMs the holder's remaining TTL; negative: the holder has none, or the server did not report it
 * @param ttlMs the TTL of the waiter, assumed for the holder until the server reports the holder's
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

/**
 * The delay until the first waiter polls while another program holds the lock: 100 to 500 ms, growing. The end of that program's value
 * notifies no waiter. Infinity for later waiters, and if the holder's text is a token of this library.
 * @param requests how often the waiter has sent its request
 */
export function foreignPollDelay(random: Random, position: number, holder: string, requests: number): number {
  if (position > 0 || holder === "" || clientIdOf(holder) !== undefined) {
    return Infinity;
  }
  return jittered(random, Math.min(maxForeignPollMs, minPollMs * 2 ** Math.min(requests, 6)), 0.5);
}

/** The delay until a waiter without a queue entry polls. The server sends it no notification, so its polls are frequent. */
export function unqueuedPollDelay(random: Random, attempts: number, remainingMs: number): number {
  const pauseMs = Math.min(maxPauseMs, 25 * 2 ** Math.min(attempts, 6));
  const untilFreeMs = remainingMs < 0 ? pauseMs : remainingMs;
  return Math.max(minPollMs, jittered(random, Math.min(pauseMs, untilFreeMs), 0.5));
}
