import { onAbort } from "./abort-listeners.ts";
import type { Clock, Timer } from "./clock.ts";

/**
 * Waits for `work`, for at most `limitMs`. Resolves with undefined if the time has passed, and `work` then continues.
 * Rejects if `work` rejects in time. The timer keeps the process alive, because a caller waits.
 */
export async function withTimeout<T>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
): Promise<T | undefined> {
  let timer: Timer;
  const limit = new Promise<undefined>(
    (resolve) => (timer = clock.setTimer(resolve as () => void, limitMs, true)),
  );
  try {
    return await Promise.race([work, limit]);
  } finally {
    clock.clearTimer(timer);
  }
}

/** Resolves after `ms`, or when the signal aborts. @param keepsProcessAlive whether the timer keeps the process alive */
export function pause(
  clock: Clock,
  ms: number,
  keepsProcessAlive = true,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clock.clearTimer(timer);
      stopListening?.();
      resolve();
    };
    const timer = clock.setTimer(end, ms, keepsProcessAlive);
    const stopListening = signal && onAbort(signal, end);
    if (signal?.aborted) {
      end();
    }
  });
}
