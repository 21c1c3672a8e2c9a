/**
 * Lets the waiters of one key enter the service's queue one after another, in the order of their arrival. Requests on separate
 * connections could overtake each other.
 */
export class ArrivalOrder {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Resolves when all earlier waiters of the key have entered the queue.
   * @returns a function to call when this waiter has entered, or no longer waits
   */
  async enter(key: string): Promise<() => void> {
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
