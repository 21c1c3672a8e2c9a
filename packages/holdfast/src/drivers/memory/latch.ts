import type { Clock, Instant } from "../../runtime/clock.ts";
import type { LatchEngine, LatchRef, PendingLatchWait } from "../../driver.ts";
import { closedError, countMismatch, kindMismatch, latchExpired } from "../../errors.ts";
import { lockState, type HeldKind, type LockKind, type LockState } from "../../lock-state.ts";
import { TimerQueue, type Scheduled } from "../../runtime/timer-queue.ts";
import { waitTimesOf } from "./lock.ts";

const maxWaitersListed = 100;

interface LatchDeps {
  readonly clock: Clock;
  /** The kind of a lock at this key; undefined if there is no lock. */
  readonly kindAt: (key: string) => HeldKind | undefined;
  /** Called with each key whose latch changed, except by the passing of time. */
  readonly changed: (key: string) => void;
}

/** The latches of a memory engine. A latch ends at its expiry, even if its timer has not run yet. */
export class MemoryLatches implements LatchEngine {
  readonly #deps: LatchDeps;
  readonly #latches = new Map<string, MemoryLatch>();
  readonly #expiries: TimerQueue<MemoryLatch>;
  readonly #deadlines: TimerQueue<LatchWaiter>;
  #createdCount = 0;
  #isClosed = false;

  constructor(deps: LatchDeps) {
    this.#deps = deps;
    this.#expiries = new TimerQueue(deps.clock, ({ key }) => this.at(key));
    this.#deadlines = new TimerQueue(
      deps.clock,
      (waiter) => {
        this.#dequeue(waiter);
        waiter.resolve(waiter.latch.remaining);
      },
      true, // a waiting caller keeps the process alive
    );
  }

  /** The latch of the key, unless the latch has expired. */
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
    const waiter = new LatchWaiter(latch, this.#deps.clock.now());
    latch.waiters.add(waiter);
    this.#deadlines.schedule(waiter, deadline);
    return {
      result: waiter.result,
      cancel: (reason) => {
        this.#dequeue(waiter);
        waiter.reject(reason);
      },
    };
  }

  /** Removes everything, and rejects all waiters with `closed`. */
  close(): void {
    this.#isClosed = true;
    for (const latch of this.#latches.values()) {
      this.#resolveWaiters(latch, (waiter) => waiter.reject(closedError(latch.key)));
    }
    this.#latches.clear();
    this.#expiries.clear();
  }

  /** The latch of the caller's generation. The first call for a key creates the latch. */
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
    const created = new MemoryLatch(key, ref.generation, count);
    this.#latches.set(key, created);
    this.#expiries.schedule(created, this.#deps.clock.now() + ttlMs);
    this.#deps.changed(key);
    return created;
  }

  #dequeue(waiter: LatchWaiter): void {
    this.#deadlines.cancel(waiter);
    waiter.latch.waiters.delete(waiter);
  }

  #resolveWaiters(latch: MemoryLatch, settle: (waiter: LatchWaiter) => void): void {
    for (const waiter of Array.from(latch.waiters)) {
      this.#dequeue(waiter);
      settle(waiter);
    }
  }
}

/** One latch, which is open when `remaining` is 0. `dueAt` is its expiry. */
class MemoryLatch implements Scheduled {
  dueAt: number = Infinity;
  slot = -1;
  readonly kind: LockKind = "latch";
  readonly key: string;
  readonly id: string;
  readonly count: number;
  readonly waiters: Set<LatchWaiter> = new Set();
  remaining: number;
  /** The attempts that have counted down. An open latch needs none, because no attempt changes it. */
  readonly #attempts = new Set<string>();

  constructor(key: string, id: string, count: number) {
    this.key = key;
    this.id = id;
    this.count = count;
    this.remaining = count;
  }

  /** @returns whether the call changed the count */
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

  /** @param owner reported as the owner of every waiter */
  state(at: Instant, owner: string): LockState {
    const { key, count, remaining, waiters } = this;
    const listed = Array.from(waiters).slice(0, maxWaitersListed);
    return lockState({
      key,
      kind: "latch",
      limit: count,
      remaining,
      holders: [],
      waiters: listed.map(({ startedAt }, position) => {
        return { owner, position, ...waitTimesOf(startedAt * 1000, at) };
      }),
      waiterCount: waiters.size,
      remainingMs: this.dueAt - at.now,
      fencingToken: null,
      nodes: [{ node: "memory", held: remaining > 0 }],
    });
  }
}

/** A caller that waits for a latch. `dueAt` is its deadline. */
class LatchWaiter implements Scheduled {
  dueAt: number = Infinity;
  slot = -1;
  readonly latch: MemoryLatch;
  readonly startedAt: number;
  readonly result: Promise<number>;
  resolve: (remaining: number) => void = () => undefined;
  reject: (reason: unknown) => void = () => undefined;

  constructor(latch: MemoryLatch, startedAt: number) {
    this.latch = latch;
    this.startedAt = startedAt;
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}
