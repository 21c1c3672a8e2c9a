/** A node of at most one queue. */
export class QueueNode<T> {
  readonly item: T;
  isQueued = false;
  previous: QueueNode<T> | undefined;
  next: QueueNode<T> | undefined;

  constructor(item: T) {
    this.item = item;
  }
}

/**
 * A queue in order of arrival, from which any node can be removed. It is not a `Set`, for the same reason as `UnorderedSet`.
 * A removed node has no links to other nodes.
 */
export class LinkedQueue<T> {
  #first: QueueNode<T> | undefined;
  #last: QueueNode<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.item;
  }

  /** The items in order of arrival. */
  *items(): Generator<T, void, undefined> {
    for (let node = this.#first; node; node = node.next) {
      yield node.item;
    }
  }

  add(node: QueueNode<T>): void {
    if (node.isQueued) {
      return;
    }
    node.isQueued = true;
    node.previous = this.#last;
    if (this.#last) {
      this.#last.next = node;
    } else {
      this.#first = node;
    }
    this.#last = node;
    this.#size += 1;
  }

  delete(node: QueueNode<T>): void {
    if (!node.isQueued) {
      return;
    }
    const { previous, next } = node;
    if (previous) {
      previous.next = next;
    } else {
      this.#first = next;
    }
    if (next) {
      next.previous = previous;
    } else {
      this.#last = previous;
    }
    node.isQueued = false;
    node.previous = undefined;
    node.next = undefined;
    this.#size -= 1;
  }
}
