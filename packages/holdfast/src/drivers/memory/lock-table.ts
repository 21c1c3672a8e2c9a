import { instantNow, type Clock } from "../../runtime/clock.ts";
import type { AcquireResult, AcquireRequest, PendingAcquire } from "../../driver.ts";
import { closedError, kindMismatch, limitMismatch, type LockError } from "../../errors.ts";
import type { Random } from "../../runtime/random.ts";
import type { LockState } from "../../lock-state.ts";
import { TimerQueue } from "../../runtime/timer-queue.ts";
import { validFrom, type Validity } from "../../validity.ts";
import { MemoryLatches } from "./latch.ts";
import { modeRequestOf, MemoryLock, MemoryWaiter, type ModeRequest, type HolderEntry } from "./lock.ts";

/**
 * The holders and waiters of every key. The table does the work of a server, including expiry.
 * Between two calls every lock in the table has a holder, because the table removes free locks.
 */
export class LockTable {
  readonly latches: MemoryLatches;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #changed: (key: string) => void;
  readonly #locks = new Map<string, MemoryLock>();
  /** The last fencing number of all grants, of any key. */
  #fences = 0n;
  readonly #expiries: TimerQueue<HolderEntry>;
  readonly #deadlines: TimerQueue<MemoryWaiter>;
  #lastTicket = 0;
  #arrivals = 0;

  /** @param changed called with each key whose state changed, except by the passing of time or a renewal */
  constructor(clock: Clock, random: Random, changed: (key: string) => void) {
    this.#clock = clock;
    this.#random = random;
    this.#changed = changed;
    this.latches = new MemoryLatches({ clock, changed, kindAt: (key) => this.lockAt(key)?.kind });
    this.#expiries = new TimerQueue(clock, ({ lock }) => this.lockAt(lock.key));
    this.#deadlines = new TimerQueue(
      clock,
      (waiter) => this.#timeOut(waiter),
      true, // a waiting caller keeps the process alive
    );
  }

  /** The time of the arrival on the monotonic clock, µs. */
  ticket(): number {
    this.#lastTicket = Math.max(this.#lastTicket + 1, Math.floor(this.#clock.now() * 1000));
    return this.#lastTicket;
  }

  /** @param instance the owner, unless the request names one */
  request(request: AcquireRequest, instance: string): PendingAcquire {
    const modeRequest = modeRequestOf(request.lockMode);
    const present = this.lockAt(request.key);
    const refusal = this.#refusal(request, modeRequest, present);
    if (refusal) {
      return { result: Promise.reject(refusal), cancel: () => undefined };
    }
    const lock = present ?? this.#lockFor(request.key, modeRequest);
    if (request.deadline === null && lock.isHeld && (lock.hasWaiters || !lock.fits(modeRequest))) {
      return resolved(held(lock, this.#clock));
    }
    return this.#enqueue(lock, request, instance);
  }

  /** Whether the key is free, so that any request would be granted at once. */
  matches(request: AcquireRequest): boolean {
    const present = this.lockAt(request.key);
    return present === undefined && this.latches.at(request.key) === undefined;
  }

  /** The lock without expired holders, even if their timer has not run yet. Undefined if the key is free. */
  lockAt(key: string): MemoryLock | undefined {
    const lock = this.#locks.get(key);
    const due = lock && Array.from(lock.entries).filter(({ dueAt }) => dueAt <= this.#clock.now());
    if (lock && due && due.length > 0) {
      due.forEach((entry) => this.end(entry));
      this.grantNext(lock);
    }
    return this.#locks.get(key);
  }

  /** The current grant of this token, if there is one. */
  entryOf(key: string, token: string): HolderEntry | undefined {
    return this.lockAt(key)?.entryOf(token);
  }

  /** Ends a grant. The caller must call {@link grantNext} or {@link request} in the same turn of the event loop. */
  end(entry: HolderEntry): void {
    this.#expiries.cancel(entry);
    entry.lock.removeHolder(entry);
  }

  /** Grants the lock to its first waiters while their weight fits. Skips waiters past their deadline. Removes a free lock. */
  grantNext(lock: MemoryLock): void {
    for (let { first } = lock; first !== undefined; { first } = lock) {
      const isAlive = first.dueAt > this.#clock.now();
      if (isAlive && first.modeRequest.weight > lock.limit) {
        lock.removeFirst();
        this.#deadlines.cancel(first);
        first.reject(limitMismatch(lock.key, lock.limit)); // the limit was lowered
        continue;
      } else if (isAlive && !lock.fits(first.modeRequest)) {
        break;
      }
      lock.removeFirst();
      this.#deadlines.cancel(first);
      if (isAlive) {
        this.#grant(lock, first);
      } else {
        first.settle(held(lock, this.#clock, 0));
      }
    }
    if (lock.isIdle) {
      this.#locks.delete(lock.key);
    }
    this.#changed(lock.key);
  }

  setLimit(key: string, limit: number): LockError | undefined {
    const lock = this.lockAt(key);
    const kind = lock?.kind ?? this.latches.at(key)?.kind ?? "semaphore";
    if (kind !== "semaphore") {
      return kindMismatch(key, kind);
    }
    if (lock) {
      lock.limit = limit;
      this.grantNext(lock);
    }
    return undefined;
  }

  /** Raises the expiry to `ttlMs` from now, and never lowers it. */
  extend(entry: HolderEntry, ttlMs: number): Validity {
    const sent = instantNow(this.#clock);
    if (sent.now + ttlMs > entry.dueAt) {
      this.#expiries.schedule(entry, sent.now + ttlMs);
    }
    return validFrom(sent, ttlMs);
  }

  /** @param instance reported as the owner of every waiter of a latch */
  state(key: string, instance: string): LockState {
    const latch = this.latches.at(key);
    if (latch) {
      return latch.state(instantNow(this.#clock), instance);
    }
    const lock = this.lockAt(key) ?? new MemoryLock(key, modeRequestOf(undefined));
    return lock.state(instantNow(this.#clock));
  }

  heldKeys(prefix: string): string[] {
    const keys = [...this.#locks.keys(), ...this.latches.keys()];
    return keys.filter(
      (key) => key.startsWith(prefix) && (this.lockAt(key) ?? this.latches.at(key)) !== undefined,
    );
  }

  /** Removes everything, and rejects all waiters with `closed`. */
  close(): void {
    this.latches.close();
    const locks = [...this.#locks.values()];
    this.#locks.clear();
    this.#expiries.clear();
    this.#deadlines.clear();
    for (const lock of locks) {
      for (const waiter of lock.removeAll()) {
        waiter.reject(closedError(lock.key));
      }
    }
  }

  /**
   * The error for a request whose kind or limit differs from the present lock. A request that has waited in its process accepts any
   * limit that suffices for its permits.
   */
  #refusal(
    { key, lockMode }: AcquireRequest,
    { kind, limit, weight }: ModeRequest,
    present: MemoryLock | undefined,
  ): LockError | undefined {
    const latch = this.latches.at(key);
    if (latch) {
      return kindMismatch(key, latch.kind);
    }
    if (present && present.kind !== kind) {
      return kindMismatch(key, present.kind);
    }
    const acceptsAny = lockMode?.kind === "semaphore" && lockMode.hasWaited === true;
    const isRefused = present && present.limit !== limit && !(acceptsAny && weight <= present.limit);
    return isRefused ? limitMismatch(key, present.limit) : undefined;
  }

  #lockFor(key: string, modeRequest: ModeRequest): MemoryLock {
    const lock = new MemoryLock(key, modeRequest);
    this.#locks.set(key, lock);
    return lock;
  }

  #enqueue(lock: MemoryLock, request: AcquireRequest, instance: string): PendingAcquire {
    this.#arrivals += 1;
    const order = { ticket: request.ticket ?? this.ticket(), serial: this.#arrivals };
    const waiter = new MemoryWaiter(request, order, instance);
    lock.enqueue(waiter);
    this.grantNext(lock);
    if (!waiter.isSettled) {
      // A try times out at once. It is queued only if it released a grant in the same step and earlier requests wait.
      this.#deadlines.schedule(waiter, request.deadline ?? this.#clock.now());
      waiter.wasQueued = true;
      request.waiter?.onQueued?.(lock.positionOf(waiter));
    }
    return {
      result: waiter.result,
      cancel: (reason) => {
        if (lock.dequeue(waiter) >= 0) {
          this.#deadlines.cancel(waiter);
          waiter.reject(reason);
          this.grantNext(lock); // later waiters may fit now
        }
      },
    };
  }

  #timeOut(waiter: MemoryWaiter): void {
    const lock = this.lockAt(waiter.request.key);
    const position = lock?.dequeue(waiter) ?? -1;
    if (lock !== undefined && position >= 0) {
      waiter.settle(held(lock, this.#clock, position));
      this.grantNext(lock);
    }
  }

  #grant(lock: MemoryLock, waiter: MemoryWaiter): void {
    const { key, ttlMs, fencingCount, info } = waiter.request;
    const { weight } = waiter.modeRequest;
    const now = BigInt(this.#wallMicros());
    const first = now > this.#fences ? now : this.#fences + 1n;
    const fence = { first, current: first, last: first + BigInt(fencingCount - 1) };
    this.#fences = fence.last;
    const token = this.#random.id();
    const owner = waiter.instance;
    const grantedAt = instantNow(this.#clock);
    const entry = {
      lock,
      token,
      fence,
      weight,
      owner,
      info,
      waiting: { localWaiters: 0 },
      grantedAt,
      dueAt: -Infinity,
      slot: -1,
    };
    lock.addHolder(entry);
    const validity = this.extend(entry, ttlMs);
    const via = waiter.wasQueued ? "message" : "reply";
    const grant = { key, token, fencingToken: first, fencingCount, validity, isClaim: false, via } as const;
    waiter.settle({ outcome: "granted", grant });
  }

  #wallMicros(): number {
    return Math.floor(this.#clock.wall() * 1000);
  }
}

function held(lock: MemoryLock, clock: Clock, position?: number): AcquireResult {
  return { outcome: "held", holder: lock.state(instantNow(clock)).holders[0], position };
}

function resolved(acquired: AcquireResult): PendingAcquire {
  return { result: Promise.resolve(acquired), cancel: () => undefined };
}
