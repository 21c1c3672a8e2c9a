/**
 * Lets the waiters of one key enter the service's queue one after another, in the order in which they came: connections have none.
 */
export class ArrivalOrder {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves when all who came before have entered; call the result when this one has, or has given up. */
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
