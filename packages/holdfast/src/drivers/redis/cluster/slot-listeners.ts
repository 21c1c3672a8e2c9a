/** Listeners by slot. A slot without listeners takes no memory. */
export class SlotListeners {
  readonly #bySlot = new Map<number, Set<() => void>>();

  /** Returns a function that removes the listener. */
  add(slot: number, listener: () => void): () => void {
    const listeners = this.#bySlot.get(slot) ?? new Set();
    this.#bySlot.set(slot, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#bySlot.get(slot) === listeners) {
        this.#bySlot.delete(slot);
      }
    };
  }

  slots(): Iterable<number> {
    return this.#bySlot.keys();
  }

  notify(slot: number): void {
    notifyAll(this.#bySlot.get(slot) ?? []);
  }

  /** Notifies the listeners of every slot that meets the condition. */
  notifyWhere(condition: (slot: number) => boolean): void {
    for (const [slot, listeners] of this.#bySlot) {
      if (condition(slot)) {
        notifyAll(listeners);
      }
    }
  }
}

function notifyAll(listeners: Iterable<() => void>): void {
  for (const listener of Array.from(listeners)) {
    listener();
  }
}
