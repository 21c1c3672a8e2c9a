/** Its own place in one queue, at the most. */
export class Link<T> {
  readonly item: T;
  isQueued = false;
  before: Link<T> | undefined;
  behind: Link<T> | undefined;

  constructor(item: T) {
    this.item = item;
  }
}

/**
 * In order of arrival; who leaves may stand anywhere. Not a `Set`, for the same reason as {@link Pool} is none: whoever has left is
 * linked to nobody.
 */
export class Queue<T> {
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.item;
  }

  /** In order. */
  *items(): Generator<T, void, undefined> {
    for (let link = this.#first; link; link = link.behind) {
      yield link.item;
    }
  }

  add(link: Link<T>): void {
    if (link.isQueued) {
      return;
    }
    link.isQueued = true;
    link.before = this.#last;
    if (this.#last) {
      this.#last.behind = link;
    } else {
      this.#first = link;
    }
    this.#last = link;
    this.#size += 1;
  }

  delete(link: Link<T>): void {
    if (!link.isQueued) {
      return;
    }
    const { before, behind } = link;
    if (before) {
      before.behind = behind;
    } else {
      this.#first = behind;
    }
    if (behind) {
      behind.before = before;
    } else {
      this.#last = before;
    }
    link.isQueued = false;
    link.before = undefined;
    link.behind = undefined;
    this.#size -= 1;
  }
}
