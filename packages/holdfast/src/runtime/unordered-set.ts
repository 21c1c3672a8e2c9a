/** Something that stands in one pool at the most. The pool keeps `place`; nobody else writes it. */
export interface Indexed {
  index: number;
}

/** The place of who stands in no pool. */
export const absent = -1;

/**
 * A set of what comes and goes with every lock. Not a `Set`: its tables are made anew again and again, V8 links each to the next, and
 * what was in them then is kept until the next full collection (measured: a fifth of what a lock allocates).
 */
export class UnorderedSet<T extends Indexed> {
  readonly #items: T[] = [];

  /** In no order. */
  get items(): readonly T[] {
    return this.#items;
  }

  add(item: T): void {
    if (item.index === absent) {
      item.index = this.#items.push(item) - 1;
    }
  }

  delete(item: T): void {
    if (item.index === absent) {
      return;
    }
    const last = this.#items.pop() as T;
    if (last !== item) {
      last.index = item.index;
      this.#items[item.index] = last;
    }
    item.index = absent;
  }
}
