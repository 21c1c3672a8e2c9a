import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import type { ResolvedAcquire } from "../options.ts";

type WaitOptions = Pick<ResolvedAcquire, "waitMs" | "signal">;

/** Turns inside this process: one at a time, in order of arrival. */
export class AsyncMutex {
  readonly #coordinator: LocalCoordinator;
  readonly #waiting = new Set<() => void>();
  #isLocked = false;

  constructor(coordinator: LocalCoordinator) {
    this.#coordinator = coordinator;
  }

  /** Resolves with whether it became ours within `waitMs`; rejects with the signal's reason, and `closed`. */
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
        true, // somebody waits for it
      );
      this.#waiting.add(grant);
    });
  }

  /** The next one's turn. */
  release(): void {
    for (const grant of this.#waiting) {
      grant();
      return;
    }
    this.#isLocked = false;
  }
}

/** A timer of Node's is for 24 days at most. Nobody waits so long for his own process. */
const maxTimerMs = 86_400_000 * 24;
