import type { Clock } from "holdfast";

/** Holds back requests for locks on one connection, so that the node executes later commands first. */
export class LateRequests {
  readonly #clock: Clock;
  #count = 0;
  #afterMs = 0;

  /** @param clock the clock of the network */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The next `count` calls with a request for a lock are sent `afterMs` later. */
  holdNext(count: number, afterMs: number): void {
    this.#count = count;
    this.#afterMs = afterMs;
  }

  async send<T>(args: readonly string[], run: () => Promise<T>): Promise<T> {
    if (this.#count === 0 || !args.some((text) => text.includes("acquire"))) {
      return run();
    }
    this.#count -= 1;
    await new Promise<void>((resolve) => {
      this.#clock.setTimer(resolve, this.#afterMs);
    });
    return run();
  }
}
