import { onAbort } from "./abort-listeners.ts";
import type { Clock, Timer } from "./clock.ts";

/**
 * What `work` resolves with, or undefined when `limitMs` has passed first; the work goes on then. Rejects as the work does.
 * Somebody waits for it, so its timer keeps the process alive.
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

/** Resolves after `ms`, or when the signal aborts. @param hold whether its timer keeps the process alive */
export function pause(clock: Clock, ms: number, hold = true, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clock.clearTimer(timer);
      stopListening?.();
      resolve();
    };
    const timer = clock.setTimer(end, ms, hold);
    const stopListening = signal && onAbort(signal, end);
    if (signal?.aborted) {
      end();
    }
  });
}
