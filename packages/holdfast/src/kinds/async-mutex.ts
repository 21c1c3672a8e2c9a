import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import type { ResolvedAcquire } from "../options.ts";

type WaitOptions = Pick<ResolvedAcquire, "waitMs" | "signal">;

/** A mutex within this process, in order of arrival. */
export class AsyncMutex {
  readonly #coordinator: LocalCoordinator;
  readonly #waiting = new Set<() => void>();
  #isLocked = false;

  constructor(coordinator: LocalCoordinator) {
    this.#coordinator = coordinator;
  }

  /** Resolves with whether the mutex was acquired within `waitMs`. Rejects with the signal's reason, or `closed`. */
  async acquire({ waitMs, signal }: WaitOptions): Promise<boolean> {
    const isFree = !this.#isLocked;
    this.#isLocked = true;
    if (isFree || waitMs === 0) {
      return isFree;
    }
    const { clock, closing } = this.#coordinator;
    return new Promise<boolean>((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(grant);
        clock.clearTimer(timer);
        stopListening.forEach((stop) => stop());
        settle();
      };
      const grant = (): void => end(() => resolve(true));
      const refuse = (reason: unknown): void => end(() => reject(reason as Error));
      const stopListening = [closing, ...(signal ? [signal] : [])].map((source) => onAbort(source, refuse));
      const timer = clock.setTimer(
        () => end(() => resolve(false)),
        Math.min(waitMs, maxTimerMs),
        true, // a caller waits
      );
      this.#waiting.add(grant);
    });
  }

  /** Grants the mutex to the next waiter. */
  release(): void {
    for (const grant of this.#waiting) {
      grant();
      return;
    }
    this.#isLocked = false;
  }
}

/** The limit of a timer of Node.js is 24.8 days. No local wait is longer. */
const maxTimerMs = 86_400_000 * 24;
