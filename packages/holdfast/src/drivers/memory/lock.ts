import type { AcquireResult, AcquireRequest, HolderReport, LockMode, HolderInfo } from "../../driver.ts";
import {
  localWaitersOf,
  lockState,
  type HeldKind,
  type Holder,
  type LockState,
  type Waiter,
} from "../../lock-state.ts";
import type { Instant } from "../../runtime/clock.ts";
import type { Scheduled } from "../../runtime/timer-queue.ts";

const maxWaitersListed = 100;

/** The share of a lock that a request needs. Holders share a lock while the sum of their weights is within the limit. */
export interface ModeRequest {
  readonly kind: HeldKind;
  readonly weight: number;
  readonly limit: number;
}

/** A mutex has a limit of 1. A writer has the weight of the whole limit. */
export function modeRequestOf(lockMode: LockMode | undefined): ModeRequest {
  if (lockMode === undefined) {
    return { kind: "mutex", weight: 1, limit: 1 };
  } else if (lockMode.kind === "semaphore") {
    return { kind: lockMode.kind, weight: lockMode.permits, limit: lockMode.limit };
  }
  return { kind: lockMode.kind, weight: lockMode.mode === "read" ? 1 : allPermits, limit: allPermits };
}

const allPermits = 2 ** 31;

/** One lock: its holders and its queue. */
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
    this.#queue.splice(this.positionOf(waiter), 0, waiter);
  }

  /** @returns the position of the waiter, from 0; -1 if the waiter is no longer in the queue */
  dequeue(waiter: MemoryWaiter): number {
    const position = this.positionOf(waiter);
    if (this.#queue[position] !== waiter) {
      return -1;
    }
    this.#queue.splice(position, 1);
    return position;
  }

  removeFirst(): void {
    this.#queue.shift();
  }

  removeAll(): MemoryWaiter[] {
    return this.#queue.splice(0);
  }

  state(at: Instant): LockState {
    const { key, kind, limit } = this;
    const { now } = at;
    const newest = Array.from(this.#entries.values()).at(-1);
    const holders = Array.from(this.#entries.values(), (entry) => holderOf(entry, now)).sort(
      (one, other) => (one.remainingMs ?? 0) - (other.remainingMs ?? 0),
    );
    return lockState({
      key,
      kind,
      limit: kind === "read-write" ? Infinity : limit,
      holders,
      waiters: this.#queue.slice(0, maxWaitersListed).map((waiter, position) => {
        return { owner: waiter.owner, position, ...waitTimesOf(waiter.ticket, at) };
      }),
      waiterCount: this.#queue.length + localWaitersOf(holders),
      remainingMs: holders.at(-1)?.remainingMs ?? null,
      fencingToken: newest?.fence.first ?? null,
      nodes: [{ node: "memory", held: holders.length > 0 }],
    });
  }

  /** The position of the waiter in the queue, or the position that a new waiter would get. */
  positionOf(waiter: MemoryWaiter): number {
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

/** A current grant. `dueAt` is its expiry. */
export interface HolderEntry extends Scheduled {
  readonly lock: MemoryLock;
  readonly token: string;
  readonly fence: Fence;
  weight: number;
  /** The owner of the instance. An owner in `info` replaces it. */
  readonly owner: string;
  info: HolderInfo | undefined;
  /** The last report of the holder. */
  waiting: Pick<HolderReport, "localWaiters" | "localWaitMs">;
  readonly grantedAt: Instant;
}

/** The fencing numbers of a grant. */
interface Fence {
  readonly first: bigint;
  /** The last number that may be in use. */
  last: bigint;
  /** The last number that the holder reported. A hand-over in the holder's process uses the next number without a report. */
  current: bigint;
}

/** A request in a queue. `dueAt` is its deadline while it waits. */
export class MemoryWaiter implements Scheduled {
  dueAt: number = Infinity;
  slot = -1;
  isSettled = false;
  /** Whether the request was not granted at once. */
  wasQueued = false;
  readonly request: AcquireRequest;
  readonly ticket: number;
  /** Orders waiters with equal tickets. */
  readonly serial: number;
  readonly modeRequest: ModeRequest;
  /** The owner of the instance. */
  readonly instance: string;
  readonly result: Promise<AcquireResult>;
  #resolve: (acquired: AcquireResult) => void = () => undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(request: AcquireRequest, order: { ticket: number; serial: number }, instance: string) {
    this.request = request;
    this.modeRequest = modeRequestOf(request.lockMode);
    this.ticket = order.ticket;
    this.serial = order.serial;
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
  const { localWaiters = 0, localWaitMs } = entry.waiting;
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken: entry.fence.current,
    ...lockModeOf(entry),
    remainingMs: Math.max(0, entry.dueAt - now),
    since: entry.grantedAt.wall,
    heldMs: now - entry.grantedAt.now,
    ...(localWaiters === 0 ? {} : { localWaiters }),
    ...(localWaitMs === undefined ? {} : { localWaitMs }),
  };
}

/** The times of a wait whose ticket is its start on the monotonic clock, µs. */
export function waitTimesOf(ticket: number, { now, wall }: Instant): Pick<Waiter, "since" | "waitedMs"> {
  const waitedMs = Math.max(0, Math.floor(now - ticket / 1000));
  return { since: Math.round(wall - waitedMs), waitedMs };
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
