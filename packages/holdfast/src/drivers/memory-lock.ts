import type { Acquired, AcquireRequest, Words } from "../driver.ts";
import { lockState, type Holder, type LockState } from "../state.ts";
import type { Timed } from "../timer-queue.ts";

const listedWaiters = 100;

/** One lock that is held: its holder, its queue, the numbers of its newest grant. */
export class MemoryLock {
  readonly key: string;
  holding: Holding | undefined;
  /** Undefined until the first grant, unless an earlier one is remembered. */
  fence: Fence | undefined;
  readonly #queue: MemoryWaiter[] = [];

  constructor(key: string, fence: Fence | undefined) {
    this.key = key;
    this.fence = fence;
  }

  join(waiter: MemoryWaiter): void {
    this.#queue.splice(this.placeOf(waiter), 0, waiter);
  }

  /** @returns its position, from 0; -1: it does not wait here any more */
  leave(waiter: MemoryWaiter): number {
    const place = this.placeOf(waiter);
    if (this.#queue[place] !== waiter) {
      return -1;
    }
    this.#queue.splice(place, 1);
    return place;
  }

  takeFirst(): MemoryWaiter | undefined {
    return this.#queue.shift();
  }

  /** Those who wait with the idempotency key of a grant: it is theirs as well. */
  takeAttempt(attemptId: string): MemoryWaiter[] {
    const found = this.#queue.filter((waiter) => waiter.request.attemptId === attemptId);
    for (const waiter of found) {
      this.leave(waiter);
    }
    return found;
  }

  takeAll(): MemoryWaiter[] {
    return this.#queue.splice(0);
  }

  state(now: number): LockState {
    const { key, holding, fence } = this;
    const holder = holding && holderOf(holding, now);
    return lockState({
      key,
      kind: "mutex",
      limit: 1,
      holders: holder === undefined ? [] : [holder],
      waiters: this.#queue.slice(0, listedWaiters).map(({ owner }, position) => ({ owner, position })),
      waiterCount: this.#queue.length,
      remainingMs: holder?.remainingMs ?? null,
      fencingToken: fence?.first ?? null,
      nodes: [{ node: "memory", held: holder !== undefined }],
    });
  }

  /** Where it stands in the queue, or would stand; usually at one of the ends. */
  placeOf(waiter: MemoryWaiter): number {
    let low = 0;
    for (let high = this.#queue.length; low < high;) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#queue[middle] as MemoryWaiter, waiter)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

/** A grant in force; `dueAt` is its expiry. */
export interface Holding extends Timed {
  readonly lock: MemoryLock;
  readonly token: string;
  readonly fence: Fence;
  readonly attemptId: string | undefined;
  /** The description of its instance; an owner in its words goes before it. */
  readonly owner: string;
  words: Words | undefined;
}

/** The numbers of the newest grant of a key. */
export interface Fence {
  readonly first: bigint;
  readonly last: bigint;
  /** The number in use, as far as we were told: inside the holder's process they change hands without us. */
  current: bigint;
}

/** A request in a queue; `dueAt` is its deadline once it waits. */
export class MemoryWaiter implements Timed {
  dueAt: number = Infinity;
  slot = -1;
  isSettled = false;
  readonly request: AcquireRequest;
  readonly ticket: number;
  /** Decides between equal tickets. */
  readonly serial: number;
  /** The description of its instance. */
  readonly instance: string;
  readonly result: Promise<Acquired>;
  #resolve: (acquired: Acquired) => void = () => undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(request: AcquireRequest, place: { ticket: number; serial: number }, instance: string) {
    this.request = request;
    this.ticket = place.ticket;
    this.serial = place.serial;
    this.instance = instance;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get owner(): string {
    return this.request.words?.owner ?? this.instance;
  }

  settle(acquired: Acquired): void {
    this.isSettled = true;
    this.#resolve(acquired);
  }

  reject(reason: unknown): void {
    this.isSettled = true;
    this.#reject(reason);
  }
}

const idleLimit = 10_000;

/**
 * The numbers of locks that are free, so that `checkFence` and `inspect` still know them. Of the keys forgotten beyond its
 * limit only the largest number stays, from which all of them go on: numbers rise for ever in bounded memory.
 */
export class IdleFences {
  readonly #fences = new Map<string, Fence>();
  #floor = 0n;

  /** No forgotten key had a larger number. */
  get floor(): bigint {
    return this.#floor;
  }

  get(key: string): Fence | undefined {
    return this.#fences.get(key);
  }

  take(key: string): Fence | undefined {
    const fence = this.#fences.get(key);
    this.#fences.delete(key);
    return fence;
  }

  keep(key: string, fence: Fence | undefined): void {
    if (fence !== undefined) {
      this.#fences.set(key, fence);
    }
    if (this.#fences.size > idleLimit) {
      for (const [oldest, { last }] of this.#fences) {
        this.#fences.delete(oldest);
        this.#floor = last > this.#floor ? last : this.#floor;
        break;
      }
    }
  }
}

export function holderOf(holding: Holding, now: number): Holder {
  const { owner = holding.owner, reason, labels } = holding.words ?? {};
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken: holding.fence.current,
    remainingMs: Math.max(0, holding.dueAt - now),
  };
}

function isBefore(one: MemoryWaiter, other: MemoryWaiter): boolean {
  return one.ticket < other.ticket || (one.ticket === other.ticket && one.serial < other.serial);
}
