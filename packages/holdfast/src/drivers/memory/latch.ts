import type { Clock } from "../../runtime/clock.ts";
import type { LatchEngine, LatchRef, PendingLatchWait } from "../../driver.ts";
import { closedError, countMismatch, kindMismatch, latchExpired } from "../../errors.ts";
import { lockState, type HeldKind, type LockKind, type LockState } from "../../lock-state.ts";
import { TimerQueue, type Scheduled } from "../../runtime/timer-queue.ts";

const maxWaitersListed = 100;

interface LatchDeps {
  readonly clock: Clock;
  /** What else the key is now; undefined: nobody holds it or waits for it. */
  readonly kindAt: (key: string) => HeldKind | undefined;
  /** Hears of every key whose latch changed otherwise than by the passing of time. */
  readonly changed: (key: string) => void;
}

/** The latches of a memory engine. Each ends when its TTL is over, whether its timer ran or not. */
export class MemoryLatches implements LatchEngine {
  readonly #deps: LatchDeps;
  readonly #latches = new Map<string, MemoryLatch>();
  readonly #expiries: TimerQueue<MemoryLatch>;
  readonly #deadlines: TimerQueue<LatchWaiter>;
  #createdCount = 0;
  #isClosed = false;

  constructor(neighbours: LatchDeps) {
    this.#deps = neighbours;
    this.#expiries = new TimerQueue(neighbours.clock, ({ key }) => this.at(key));
    this.#deadlines = new TimerQueue(
      neighbours.clock,
      (waiter) => {
        this.#dequeue(waiter);
        waiter.resolve(waiter.latch.remaining);
      },
      true, // somebody waits for it
    );
  }

  /** The latch of the key as it is now. */
  at(key: string): MemoryLatch | undefined {
    const latch = this.#latches.get(key);
    if (latch && latch.dueAt <= this.#deps.clock.now()) {
      this.#expiries.cancel(latch);
      this.#latches.delete(key);
      this.#resolveWaiters(latch, (waiter) => waiter.reject(latchExpired(key)));
      this.#deps.changed(key);
      return undefined;
    }
    return latch;
  }

  keys(): Iterable<string> {
    return this.#latches.keys();
  }

  async countDown(ref: LatchRef, attemptId: string | undefined): Promise<number> {
    const latch = this.#loadOrCreate(ref);
    if (latch.countDown(attemptId)) {
      this.#deps.changed(ref.key);
    }
    if (latch.remaining === 0) {
      this.#resolveWaiters(latch, (waiter) => waiter.resolve(0));
    }
    return latch.remaining;
  }

  wait(ref: LatchRef, deadline: number | null): PendingLatchWait {
    let latch: MemoryLatch;
    try {
      latch = this.#loadOrCreate(ref);
    } catch (error) {
      return { result: Promise.reject(error as Error), cancel: () => undefined };
    }
    if (latch.remaining === 0 || deadline === null) {
      return { result: Promise.resolve(latch.remaining), cancel: () => undefined };
    }
    const waiter = new LatchWaiter(latch);
    latch.waiting.add(waiter);
    this.#deadlines.schedule(waiter, deadline);
    return {
      result: waiter.result,
      cancel: (reason) => {
        this.#dequeue(waiter);
        waiter.reject(reason);
      },
    };
  }

  /** Forgets everything; who waits is rejected `closed`. */
  close(): void {
    this.#isClosed = true;
    for (const latch of this.#latches.values()) {
      this.#resolveWaiters(latch, (waiter) => waiter.reject(closedError(latch.key)));
    }
    this.#latches.clear();
    this.#expiries.clear();
  }

  /** The latch that the caller sees, made if nobody has touched it yet. */
  #loadOrCreate(ref: LatchRef): MemoryLatch {
    const { key, count, ttlMs } = ref;
    if (this.#isClosed) {
      throw closedError(key);
    }
    const latch = this.at(key);
    if (ref.generation !== undefined && ref.generation !== latch?.id) {
      throw latchExpired(key);
    } else if (latch && latch.count !== count) {
      throw countMismatch(key, latch.count);
    } else if (latch) {
      ref.generation = latch.id;
      return latch;
    }
    const kind = this.#deps.kindAt(key);
    if (kind !== undefined) {
      throw kindMismatch(key, kind);
    }
    this.#createdCount += 1;
    ref.generation = String(this.#createdCount);
    const made = new MemoryLatch(key, ref.generation, count);
    this.#latches.set(key, made);
    this.#expiries.schedule(made, this.#deps.clock.now() + ttlMs);
    this.#deps.changed(key);
    return made;
  }

  #dequeue(waiter: LatchWaiter): void {
    this.#deadlines.cancel(waiter);
    waiter.latch.waiting.delete(waiter);
  }

  #resolveWaiters(latch: MemoryLatch, settle: (waiter: LatchWaiter) => void): void {
    for (const waiter of Array.from(latch.waiting)) {
      this.#dequeue(waiter);
      settle(waiter);
    }
  }
}

/** One latch, open when nothing is left; `dueAt` is its end. */
class MemoryLatch implements Scheduled {
  dueAt: number = Infinity;
  slot = -1;
  readonly kind: LockKind = "latch";
  readonly key: string;
  readonly id: string;
  readonly count: number;
  readonly waiting: Set<LatchWaiter> = new Set();
  remaining: number;
  /** The attempts that have counted. Once it is open they are of no use any more. */
  readonly #attempts = new Set<string>();

  constructor(key: string, id: string, count: number) {
    this.key = key;
    this.id = id;
    this.count = count;
    this.remaining = count;
  }

  /** @returns whether it counted */
  countDown(attemptId: string | undefined): boolean {
    if (this.remaining === 0 || (attemptId !== undefined && this.#attempts.has(attemptId))) {
      return false;
    }
    this.remaining -= 1;
    if (this.remaining === 0) {
      this.#attempts.clear();
    } else if (attemptId !== undefined) {
      this.#attempts.add(attemptId);
    }
    return true;
  }

  /** @param owner who waits, as far as the driver knows */
  state(now: number, owner: string): LockState {
    const { key, count, remaining, waiting: waiter } = this;
    const listed = Math.min(waiter.size, maxWaitersListed);
    return lockState({
      key,
      kind: "latch",
      limit: count,
      remaining,
      holders: [],
      waiters: Array.from({ length: listed }, (_, position) => ({ owner, position })),
      waiterCount: waiter.size,
      remainingMs: this.dueAt - now,
      fencingToken: null,
      nodes: [{ node: "memory", held: remaining > 0 }],
    });
  }
}

/** Somebody who waits; `dueAt` is his deadline. */
class LatchWaiter implements Scheduled {
  dueAt: number = Infinity;
  slot = -1;
  readonly latch: MemoryLatch;
  readonly result: Promise<number>;
  resolve: (remaining: number) => void = () => undefined;
  reject: (reason: unknown) => void = () => undefined;

  constructor(latch: MemoryLatch) {
    this.latch = latch;
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}
