import { whenAborted } from "../runtime/abort-listeners.ts";
import type { Contention } from "../local/coordinator.ts";
import type { ResolvedAcquire } from "../options.ts";

type Patience = Pick<ResolvedAcquire, "waitMs" | "signal">;

/** Turns inside this process: one at a time, in order of arrival. */
export class Turns {
  readonly #contention: Contention;
  readonly #waiting = new Set<() => void>();
  #isTaken = false;

  constructor(contention: Contention) {
    this.#contention = contention;
  }

  /** Resolves with whether it became ours within `waitMs`; rejects with the signal's reason, and `closed`. */
  async take({ waitMs, signal }: Patience): Promise<boolean> {
    const isFree = !this.#isTaken;
    this.#isTaken = true;
    if (isFree || waitMs === 0) {
      return isFree;
    }
    const { clock, closing } = this.#contention;
    return new Promise<boolean>((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(begin);
        clock.clearTimer(timer);
        stopListening.forEach((stop) => stop());
        settle();
      };
      const begin = (): void => end(() => resolve(true));
      const refuse = (reason: unknown): void => end(() => reject(reason as Error));
      const stopListening = [closing, ...(signal ? [signal] : [])].map((source) =>
        whenAborted(source, refuse),
      );
      const timer = clock.setTimer(
        () => end(() => resolve(false)),
        Math.min(waitMs, longMs),
        true, // somebody waits for it
      );
      this.#waiting.add(begin);
    });
  }

  /** The next one's turn. */
  give(): void {
    for (const begin of this.#waiting) {
      begin();
      return;
    }
    this.#isTaken = false;
  }
}

/** A timer of Node's is for 24 days at most. Nobody waits so long for his own process. */
const longMs = 86_400_000 * 24;
