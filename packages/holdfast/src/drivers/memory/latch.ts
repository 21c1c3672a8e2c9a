import type { Clock } from "../../runtime/clock.ts";
import type { Latches, LatchView, LatchWait } from "../../driver.ts";
import { closedError, countMismatch, kindMismatch, latchExpired } from "../../errors.ts";
import { lockState, type HeldKind, type LockKind, type LockState } from "../../lock-state.ts";
import { TimerQueue, type Timed } from "../../runtime/timer-queue.ts";

const listedWaiters = 100;

interface Neighbours {
  readonly clock: Clock;
  /** What else the key is now; undefined: nobody holds it or waits for it. */
  readonly kindAt: (key: string) => HeldKind | undefined;
  /** Hears of every key whose latch changed otherwise than by the passing of time. */
  readonly changed: (key: string) => void;
}

/** The latches of a memory engine. Each ends when its TTL is over, whether its timer ran or not. */
export class MemoryLatches implements Latches {
  readonly #neighbours: Neighbours;
  readonly #latches = new Map<string, MemoryLatch>();
  readonly #ends: TimerQueue<MemoryLatch>;
  readonly #deadlines: TimerQueue<Waiting>;
  #born = 0;
  #isClosed = false;

  constructor(neighbours: Neighbours) {
    this.#neighbours = neighbours;
    this.#ends = new TimerQueue(neighbours.clock, ({ key }) => this.at(key));
    this.#deadlines = new TimerQueue(
      neighbours.clock,
      (waiting) => {
        this.#leave(waiting);
        waiting.resolve(waiting.latch.left);
      },
      true, // somebody waits for it
    );
  }

  /** The latch of the key as it is now. */
  at(key: string): MemoryLatch | undefined {
    const latch = this.#latches.get(key);
    if (latch && latch.dueAt <= this.#neighbours.clock.now()) {
      this.#ends.cancel(latch);
      this.#latches.delete(key);
      this.#letGo(latch, (waiting) => waiting.reject(latchExpired(key)));
      this.#neighbours.changed(key);
      return undefined;
    }
    return latch;
  }

  keys(): Iterable<string> {
    return this.#latches.keys();
  }

  async countDown(view: LatchView, attemptId: string | undefined): Promise<number> {
    const latch = this.#touch(view);
    if (latch.countDown(attemptId)) {
      this.#neighbours.changed(view.key);
    }
    if (latch.left === 0) {
      this.#letGo(latch, (waiting) => waiting.resolve(0));
    }
    return latch.left;
  }

  wait(view: LatchView, deadline: number | null): LatchWait {
    let latch: MemoryLatch;
    try {
      latch = this.#touch(view);
    } catch (error) {
      return { result: Promise.reject(error as Error), cancel: () => undefined };
    }
    if (latch.left === 0 || deadline === null) {
      return { result: Promise.resolve(latch.left), cancel: () => undefined };
    }
    const waiting = new Waiting(latch);
    latch.waiting.add(waiting);
    this.#deadlines.schedule(waiting, deadline);
    return {
      result: waiting.result,
      cancel: (reason) => {
        this.#leave(waiting);
        waiting.reject(reason);
      },
    };
  }

  /** Forgets everything; who waits is rejected `closed`. */
  close(): void {
    this.#isClosed = true;
    for (const latch of this.#latches.values()) {
      this.#letGo(latch, (waiting) => waiting.reject(closedError(latch.key)));
    }
    this.#latches.clear();
    this.#ends.clear();
  }

  /** The latch that the caller sees, made if nobody has touched it yet. */
  #touch(view: LatchView): MemoryLatch {
    const { key, count, ttlMs } = view;
    if (this.#isClosed) {
      throw closedError(key);
    }
    const latch = this.at(key);
    if (view.id !== undefined && view.id !== latch?.id) {
      throw latchExpired(key);
    } else if (latch && latch.count !== count) {
      throw countMismatch(key, latch.count);
    } else if (latch) {
      view.id = latch.id;
      return latch;
    }
    const kind = this.#neighbours.kindAt(key);
    if (kind !== undefined) {
      throw kindMismatch(key, kind);
    }
    this.#born += 1;
    view.id = String(this.#born);
    const made = new MemoryLatch(key, view.id, count);
    this.#latches.set(key, made);
    this.#ends.schedule(made, this.#neighbours.clock.now() + ttlMs);
    this.#neighbours.changed(key);
    return made;
  }

  #leave(waiting: Waiting): void {
    this.#deadlines.cancel(waiting);
    waiting.latch.waiting.delete(waiting);
  }

  #letGo(latch: MemoryLatch, settle: (waiting: Waiting) => void): void {
    for (const waiting of Array.from(latch.waiting)) {
      this.#leave(waiting);
      settle(waiting);
    }
  }
}

/** One latch, open when nothing is left; `dueAt` is its end. */
class MemoryLatch implements Timed {
  dueAt: number = Infinity;
  slot = -1;
  readonly kind: LockKind = "latch";
  readonly key: string;
  readonly id: string;
  readonly count: number;
  readonly waiting: Set<Waiting> = new Set();
  left: number;
  /** The attempts that have counted. Once it is open they are of no use any more. */
  readonly #attempts = new Set<string>();

  constructor(key: string, id: string, count: number) {
    this.key = key;
    this.id = id;
    this.count = count;
    this.left = count;
  }

  /** @returns whether it counted */
  countDown(attemptId: string | undefined): boolean {
    if (this.left === 0 || (attemptId !== undefined && this.#attempts.has(attemptId))) {
      return false;
    }
    this.left -= 1;
    if (this.left === 0) {
      this.#attempts.clear();
    } else if (attemptId !== undefined) {
      this.#attempts.add(attemptId);
    }
    return true;
  }

  /** @param owner who waits, as far as the driver knows */
  state(now: number, owner: string): LockState {
    const { key, count, left, waiting } = this;
    const listed = Math.min(waiting.size, listedWaiters);
    return lockState({
      key,
      kind: "latch",
      limit: count,
      left,
      holders: [],
      waiters: Array.from({ length: listed }, (_, position) => ({ owner, position })),
      waiterCount: waiting.size,
      remainingMs: this.dueAt - now,
      fencingToken: null,
      nodes: [{ node: "memory", held: left > 0 }],
    });
  }
}

/** Somebody who waits; `dueAt` is his deadline. */
class Waiting implements Timed {
  dueAt: number = Infinity;
  slot = -1;
  readonly latch: MemoryLatch;
  readonly result: Promise<number>;
  resolve: (left: number) => void = () => undefined;
  reject: (reason: unknown) => void = () => undefined;

  constructor(latch: MemoryLatch) {
    this.latch = latch;
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}
