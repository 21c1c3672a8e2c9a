import type { Clock, Timer } from "./clock.ts";

/** An item with one due time. Only the timer queue writes `slot` and `dueAt`. */
export interface Scheduled {
  dueAt: number;
  slot: number;
}

const absent = -1;
/** The largest number of items in one run of the timer. Afterwards the process reads the replies that have arrived. */
const mostAtOnce = 256;
/** A timer without items stays set if it was set for at most this time. It refers to its queue until then. */
const longestRestMs = 60_000;

/**
 * Many due times, one timer: calls `fire` for each due item, earliest first.
 * A binary heap whose items know their slot, so that a removal costs O(log n). Most items are removed long before their due time.
 */
export class TimerQueue<T extends Scheduled> {
  readonly #clock: Clock;
  readonly #fire: (item: T) => void;
  readonly #keepsProcessAlive: boolean;
  readonly #leadOf: (item: T) => number;
  readonly #heap: T[] = [];
  #timer: Timer = undefined;
  #timerAt = Infinity;
  /** How long before its time the timer was set, ms. */
  #timerMs = 0;

  /**
   * @param keepsProcessAlive whether the timer keeps the process alive: true only if callers wait for it
   * @param leadOf how much earlier than due an item may fire together with an item that is due, ms
   */
  constructor(
    clock: Clock,
    fire: (item: T) => void,
    keepsProcessAlive = false,
    leadOf: (item: T) => number = () => 0,
  ) {
    this.#clock = clock;
    this.#fire = fire;
    this.#keepsProcessAlive = keepsProcessAlive;
    this.#leadOf = leadOf;
  }

  get size(): number {
    return this.#heap.length;
  }

  items(): readonly T[] {
    return this.#heap;
  }

  /** Sets or moves the due time of an item, on the scale of `clock.now()`. `Infinity` removes the item. */
  schedule(item: T, dueAt: number): void {
    if (dueAt === Infinity) {
      this.cancel(item);
      return;
    }
    item.dueAt = dueAt;
    if (item.slot === absent) {
      if (this.#heap.length === 0) {
        this.#keepAlive(true);
      }
      item.slot = this.#heap.length;
      this.#heap.push(item);
    }
    this.#settle(item);
    if (dueAt < this.#timerAt && this.#timerAt > this.#clock.now()) {
      this.#arm(dueAt); // a timer that is already due runs sooner than a new timer
    }
  }

  cancel(item: T): void {
    if (item.slot === absent) {
      return;
    }
    const last = this.#heap.pop() as T;
    if (last !== item) {
      last.slot = item.slot;
      this.#heap[item.slot] = last;
      this.#settle(last);
    }
    item.slot = absent;
    if (this.#heap.length === 0) {
      this.#rest();
    }
  }

  /** Fires the due items now, without the timer. */
  wakeDue(): void {
    this.#disarm();
    this.#run();
  }

  clear(): void {
    for (const item of this.#heap) {
      item.slot = absent;
    }
    this.#heap.length = 0;
    this.#disarm();
  }

  #arm(dueAt: number): void {
    this.#disarm();
    this.#timerAt = dueAt;
    this.#timerMs = dueAt - this.#clock.now();
    this.#timer = this.#clock.setTimer(this.#run, this.#timerMs, this.#keepsProcessAlive);
  }

  /** The last item was removed. The next one will probably need a timer for a later time. */
  #rest(): void {
    if (this.#clock.keepAlive && this.#timerMs <= longestRestMs) {
      this.#keepAlive(false);
    } else {
      this.#disarm();
    }
  }

  #keepAlive(keepsProcessAlive: boolean): void {
    if (this.#keepsProcessAlive && this.#timerAt !== Infinity) {
      this.#clock.keepAlive?.(this.#timer, keepsProcessAlive);
    }
  }

  #disarm(): void {
    if (this.#timerAt !== Infinity) {
      this.#clock.clearTimer(this.#timer);
      this.#timerAt = Infinity;
    }
  }

  readonly #run = (): void => {
    this.#timerAt = Infinity;
    try {
      const remaining = this.#fireDue(mostAtOnce);
      this.#fireDue(remaining); // items that became due during the run: a new timer would run after all replies
    } finally {
      const next = this.#heap[0];
      if (next !== undefined && next.dueAt < this.#timerAt) {
        this.#arm(next.dueAt);
      }
    }
  };

  /** @returns how many more items may fire in this run */
  #fireDue(limit: number): number {
    const now = this.#clock.now();
    let remaining = limit;
    for (
      let first = this.#heap[0];
      remaining > 0 && first !== undefined && first.dueAt <= now + this.#leadOf(first);
      first = this.#heap[0]
    ) {
      remaining -= 1;
      this.cancel(first);
      this.#fire(first);
    }
    return remaining;
  }

  #settle(item: T): void {
    const heap = this.#heap;
    let slot = item.slot;
    for (
      let parent = (slot - 1) >> 1;
      slot > 0 && at(heap, parent).dueAt > item.dueAt;
      parent = (slot - 1) >> 1
    ) {
      place(heap, at(heap, parent), slot);
      slot = parent;
    }
    for (let child = smallerChild(heap, slot); child !== absent && at(heap, child).dueAt < item.dueAt;) {
      place(heap, at(heap, child), slot);
      slot = child;
      child = smallerChild(heap, slot);
    }
    place(heap, item, slot);
  }
}

function at<T>(heap: T[], slot: number): T {
  return heap[slot] as T;
}

function place<T extends Scheduled>(heap: T[], item: T, slot: number): void {
  heap[slot] = item;
  item.slot = slot;
}

function smallerChild(heap: Scheduled[], slot: number): number {
  const left = slot * 2 + 1;
  if (left >= heap.length) {
    return absent;
  }
  const right = left + 1;
  return right < heap.length && at(heap, right).dueAt < at(heap, left).dueAt ? right : left;
}
