import type { Acquired, AcquireRequest, Share, Words } from "../../driver.ts";
import { localWaitersOf, lockState, type HeldKind, type Holder, type LockState } from "../../lock-state.ts";
import type { Timed } from "../../runtime/timer-queue.ts";

const listedWaiters = 100;

/** How much of a lock a request wants: holders share it while their weights stay within the limit. */
export interface Demand {
  readonly kind: HeldKind;
  readonly weight: number;
  readonly limit: number;
}

/** A mutex has one permit; a writer takes all that there are. */
export function demandOf(share: Share | undefined): Demand {
  if (share === undefined) {
    return { kind: "mutex", weight: 1, limit: 1 };
  } else if (share.kind === "semaphore") {
    return { kind: share.kind, weight: share.permits, limit: share.limit };
  }
  return { kind: share.kind, weight: share.mode === "read" ? 1 : everybody, limit: everybody };
}

const everybody = 2 ** 31;

/** One lock that is held: its holders and its queue. */
export class MemoryLock {
  readonly key: string;
  kind: HeldKind;
  limit: number;
  readonly #holdings = new Map<string, Holding>();
  #used = 0;
  readonly #queue: MemoryWaiter[] = [];

  constructor(key: string, { kind, limit }: Pick<Demand, "kind" | "limit">) {
    this.key = key;
    this.kind = kind;
    this.limit = limit;
  }

  /** In the order of the grants. */
  get holdings(): Iterable<Holding> {
    return this.#holdings.values();
  }

  get isHeld(): boolean {
    return this.#holdings.size > 0;
  }

  get isIdle(): boolean {
    return this.#holdings.size === 0 && this.#queue.length === 0;
  }

  get hasWaiters(): boolean {
    return this.#queue.length > 0;
  }

  holdingOf(token: string): Holding | undefined {
    return this.#holdings.get(token);
  }

  fits({ weight }: Pick<Demand, "weight">): boolean {
    return this.#used + weight <= this.limit;
  }

  admit(holding: Holding): void {
    this.#holdings.set(holding.token, holding);
    this.#used += holding.weight;
  }

  remove(holding: Holding): void {
    if (this.#holdings.delete(holding.token)) {
      this.#used -= holding.weight;
    }
  }

  downgrade(holding: Holding): void {
    this.#used += 1 - holding.weight;
    holding.weight = 1;
  }

  get first(): MemoryWaiter | undefined {
    return this.#queue[0];
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

  takeFirst(): void {
    this.#queue.shift();
  }

  takeAll(): MemoryWaiter[] {
    return this.#queue.splice(0);
  }

  state(now: number): LockState {
    const { key, kind, limit } = this;
    const newest = Array.from(this.#holdings.values()).at(-1);
    const holders = Array.from(this.#holdings.values(), (holding) => holderOf(holding, now)).sort(
      (one, other) => (one.remainingMs ?? 0) - (other.remainingMs ?? 0),
    );
    return lockState({
      key,
      kind,
      limit: kind === "read-write" ? Infinity : limit,
      holders,
      waiters: this.#queue.slice(0, listedWaiters).map(({ owner }, position) => ({ owner, position })),
      waiterCount: this.#queue.length + localWaitersOf(holders),
      remainingMs: holders.at(-1)?.remainingMs ?? null,
      fencingToken: newest?.fence.first ?? null,
      nodes: [{ node: "memory", held: holders.length > 0 }],
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
  /** Its own numbers. */
  readonly fence: Fence;
  weight: number;
  /** The description of its instance; an owner in its words goes before it. */
  readonly owner: string;
  words: Words | undefined;
  /** As its holder last reported. */
  localWaiters: number;
}

/** The numbers of a grant. */
interface Fence {
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
  readonly demand: Demand;
  /** The description of its instance. */
  readonly instance: string;
  readonly result: Promise<Acquired>;
  #resolve: (acquired: Acquired) => void = () => undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(request: AcquireRequest, place: { ticket: number; serial: number }, instance: string) {
    this.request = request;
    this.demand = demandOf(request.share);
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

function holderOf(holding: Holding, now: number): Holder {
  const { owner = holding.owner, reason, labels } = holding.words ?? {};
  const { localWaiters } = holding;
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken: holding.fence.current,
    ...shareOf(holding),
    remainingMs: Math.max(0, holding.dueAt - now),
    ...(localWaiters === 0 ? {} : { localWaiters }),
  };
}

function shareOf({ lock, weight }: Holding): Pick<Holder, "mode" | "permits"> {
  switch (lock.kind) {
    case "mutex":
      return {};
    case "read-write":
      return { mode: weight === 1 ? "read" : "write" };
    case "semaphore":
      return { permits: weight };
  }
}

function isBefore(one: MemoryWaiter, other: MemoryWaiter): boolean {
  return one.ticket < other.ticket || (one.ticket === other.ticket && one.serial < other.serial);
}
