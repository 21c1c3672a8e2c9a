import type { Clock } from "./clock.ts";
import { withTimeout } from "./timeout.ts";

/**
 * Lets the waiters of one key enter the engine's queue one after another, in the order of their arrival. Requests on separate
 * connections could overtake each other.
 */
export class ArrivalOrder {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Resolves when all earlier waiters of the key have entered the queue, or with undefined after `limitMs`.
   * @returns a function to call when this waiter has entered, or no longer waits
   */
  async enterWithin(clock: Clock, limitMs: number, key: string): Promise<(() => void) | undefined> {
    const isFirst = !this.#last.has(key);
    const turn = this.#enter(key);
    if (isFirst) {
      return turn; // needs no timer
    }
    const entered = await withTimeout(clock, limitMs, turn);
    if (!entered) {
      void turn.then((late) => {
        late(); // not sooner, because the later waiters must still enter after the earlier ones
      });
    }
    return entered;
  }

  async #enter(key: string): Promise<() => void> {
    const previous = this.#last.get(key);
    let entered!: () => void;
    const own = new Promise<void>((resolve) => (entered = resolve));
    this.#last.set(key, own);
    void own.then(() => {
      if (this.#last.get(key) === own) {
        this.#last.delete(key);
      }
    });
    await previous;
    return entered;
  }
}
