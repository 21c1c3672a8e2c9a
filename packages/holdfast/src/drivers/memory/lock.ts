import type { AcquireResult, AcquireRequest, LockMode, HolderInfo } from "../../driver.ts";
import { localWaitersOf, lockState, type HeldKind, type Holder, type LockState } from "../../lock-state.ts";
import type { Scheduled } from "../../runtime/timer-queue.ts";

const maxWaitersListed = 100;

/** How much of a lock a request wants: holders share it while their weights stay within the limit. */
export interface ModeRequest {
  readonly kind: HeldKind;
  readonly weight: number;
  readonly limit: number;
}

/** A mutex has one permit; a writer takes all that there are. */
export function modeRequestOf(lockMode: LockMode | undefined): ModeRequest {
  if (lockMode === undefined) {
    return { kind: "mutex", weight: 1, limit: 1 };
  } else if (lockMode.kind === "semaphore") {
    return { kind: lockMode.kind, weight: lockMode.permits, limit: lockMode.limit };
  }
  return { kind: lockMode.kind, weight: lockMode.mode === "read" ? 1 : allPermits, limit: allPermits };
}

const allPermits = 2 ** 31;

/** One lock that is held: its holders and its queue. */
export class MemoryLock {
  readonly key: string;
  kind: HeldKind;
  limit: number;
  readonly #entries = new Map<string, HolderEntry>();
  #used = 0;
  readonly #queue: MemoryWaiter[] = [];

  constructor(key: string, { kind, limit }: Pick<ModeRequest, "kind" | "limit">) {
    this.key = key;
    this.kind = kind;
    this.limit = limit;
  }

  /** In the order of the grants. */
  get entries(): Iterable<HolderEntry> {
    return this.#entries.values();
  }

  get isHeld(): boolean {
    return this.#entries.size > 0;
  }

  get isIdle(): boolean {
    return this.#entries.size === 0 && this.#queue.length === 0;
  }

  get hasWaiters(): boolean {
    return this.#queue.length > 0;
  }

  entryOf(token: string): HolderEntry | undefined {
    return this.#entries.get(token);
  }

  fits({ weight }: Pick<ModeRequest, "weight">): boolean {
    return this.#used + weight <= this.limit;
  }

  addHolder(entry: HolderEntry): void {
    this.#entries.set(entry.token, entry);
    this.#used += entry.weight;
  }

  removeHolder(entry: HolderEntry): void {
    if (this.#entries.delete(entry.token)) {
      this.#used -= entry.weight;
    }
  }

  downgrade(entry: HolderEntry): void {
    this.#used += 1 - entry.weight;
    entry.weight = 1;
  }

  get first(): MemoryWaiter | undefined {
    return this.#queue[0];
  }

  enqueue(waiter: MemoryWaiter): void {
    this.#queue.splice(this.placeOf(waiter), 0, waiter);
  }

  /** @returns its position, from 0; -1: it does not wait here any more */
  dequeue(waiter: MemoryWaiter): number {
    const position = this.placeOf(waiter);
    if (this.#queue[position] !== waiter) {
      return -1;
    }
    this.#queue.splice(position, 1);
    return position;
  }

  takeFirst(): void {
    this.#queue.shift();
  }

  takeAll(): MemoryWaiter[] {
    return this.#queue.splice(0);
  }

  state(now: number): LockState {
    const { key, kind, limit } = this;
    const newest = Array.from(this.#entries.values()).at(-1);
    const holders = Array.from(this.#entries.values(), (entry) => holderOf(entry, now)).sort(
      (one, other) => (one.remainingMs ?? 0) - (other.remainingMs ?? 0),
    );
    return lockState({
      key,
      kind,
      limit: kind === "read-write" ? Infinity : limit,
      holders,
      waiters: this.#queue.slice(0, maxWaitersListed).map(({ owner }, position) => ({ owner, position })),
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
export interface HolderEntry extends Scheduled {
  readonly lock: MemoryLock;
  readonly token: string;
  /** Its own numbers. */
  readonly fence: Fence;
  weight: number;
  /** The description of its instance; an owner in its words goes before it. */
  readonly owner: string;
  info: HolderInfo | undefined;
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
export class MemoryWaiter implements Scheduled {
  dueAt: number = Infinity;
  slot = -1;
  isSettled = false;
  readonly request: AcquireRequest;
  readonly ticket: number;
  /** Decides between equal tickets. */
  readonly serial: number;
  readonly modeRequest: ModeRequest;
  /** The description of its instance. */
  readonly instance: string;
  readonly result: Promise<AcquireResult>;
  #resolve: (acquired: AcquireResult) => void = () => undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(request: AcquireRequest, position: { ticket: number; serial: number }, instance: string) {
    this.request = request;
    this.modeRequest = modeRequestOf(request.lockMode);
    this.ticket = position.ticket;
    this.serial = position.serial;
    this.instance = instance;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get owner(): string {
    return this.request.info?.owner ?? this.instance;
  }

  settle(acquired: AcquireResult): void {
    this.isSettled = true;
    this.#resolve(acquired);
  }

  reject(reason: unknown): void {
    this.isSettled = true;
    this.#reject(reason);
  }
}

function holderOf(entry: HolderEntry, now: number): Holder {
  const { owner = entry.owner, reason, labels } = entry.info ?? {};
  const { localWaiters } = entry;
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken: entry.fence.current,
    ...lockModeOf(entry),
    remainingMs: Math.max(0, entry.dueAt - now),
    ...(localWaiters === 0 ? {} : { localWaiters }),
  };
}

function lockModeOf({ lock, weight }: HolderEntry): Pick<Holder, "mode" | "permits"> {
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
