import { instantNow, type Clock } from "../../runtime/clock.ts";
import { publish } from "../../diagnostics.ts";
import type { AcquireResult, AcquireRequest, PendingAcquire } from "../../driver.ts";
import { closedError, kindMismatch, limitMismatch, type LockError } from "../../errors.ts";
import type { Random } from "../../runtime/random.ts";
import type { LockState } from "../../lock-state.ts";
import { TimerQueue } from "../../runtime/timer-queue.ts";
import { validFrom, type Validity } from "../../validity.ts";
import { MemoryLatches } from "./latch.ts";
import { modeRequestOf, MemoryLock, MemoryWaiter, type ModeRequest, type HolderEntry } from "./lock.ts";

/**
 * Who holds and who waits, key by key: everything that a server would do by itself, expiry included.
 * Between any two calls every lock that it knows has a holder; what is free is forgotten.
 */
export class LockTable {
  readonly latches: MemoryLatches;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #changed: (key: string) => void;
  readonly #locks = new Map<string, MemoryLock>();
  /** The last fencing number given out, for any key. */
  #fences = 0n;
  readonly #expiries: TimerQueue<HolderEntry>;
  readonly #deadlines: TimerQueue<MemoryWaiter>;
  #lastTicket = 0;
  #arrivals = 0;

  /** @param changed hears of every key whose state changed otherwise than by the passing of time or a renewal */
  constructor(clock: Clock, random: Random, changed: (key: string) => void) {
    this.#clock = clock;
    this.#random = random;
    this.#changed = changed;
    this.latches = new MemoryLatches({ clock, changed, kindAt: (key) => this.lockAt(key)?.kind });
    this.#expiries = new TimerQueue(clock, ({ lock }) => this.lockAt(lock.key));
    this.#deadlines = new TimerQueue(
      clock,
      (waiter) => this.#timeOut(waiter),
      true, // somebody waits for it
    );
  }

  ticket(): number {
    this.#lastTicket = Math.max(this.#lastTicket + 1, this.#wallMicros());
    return this.#lastTicket;
  }

  /** @param instance who asks, unless the request has an owner of its own */
  request(request: AcquireRequest, instance: string): PendingAcquire {
    const modeRequest = modeRequestOf(request.lockMode);
    const present = this.lockAt(request.key);
    const refusal = this.#refusal(request, modeRequest, present);
    if (refusal) {
      return { result: Promise.reject(refusal), cancel: () => undefined };
    }
    const lock = present ?? this.#lockFor(request.key, modeRequest);
    if (request.deadline === null && lock.isHeld && (lock.hasWaiters || !lock.fits(modeRequest))) {
      return resolved(held(lock, this.#clock.now()));
    }
    return this.#enqueue(lock, request, instance);
  }

  /** Whether a request for itself alone would be granted at once. */
  matches(request: AcquireRequest): boolean {
    const present = this.lockAt(request.key);
    return present === undefined && this.latches.at(request.key) === undefined;
  }

  /** The lock as it is now: a holder whose TTL has passed is gone, whether its timer ran or not. Undefined: free. */
  lockAt(key: string): MemoryLock | undefined {
    const lock = this.#locks.get(key);
    const due = lock && Array.from(lock.entries).filter(({ dueAt }) => dueAt <= this.#clock.now());
    if (lock && due && due.length > 0) {
      due.forEach((entry) => this.end(entry));
      this.grantNext(lock);
    }
    return this.#locks.get(key);
  }

  /** The grant in force, if it is that token's. */
  holdingOf(key: string, token: string): HolderEntry | undefined {
    return this.lockAt(key)?.entryOf(token);
  }

  /** Takes the lock from a holder. {@link grantNext} or {@link request} has to follow in the same turn. */
  end(entry: HolderEntry): void {
    this.#expiries.cancel(entry);
    entry.lock.removeHolder(entry);
  }

  /** Gives the lock to the first in its queue whose deadline is still to come, while there is room for him; or forgets it. */
  grantNext(lock: MemoryLock): void {
    for (let { first } = lock; first !== undefined; { first } = lock) {
      const isAlive = first.dueAt > this.#clock.now();
      if (isAlive && first.modeRequest.weight > lock.limit) {
        lock.takeFirst();
        this.#deadlines.cancel(first);
        first.reject(limitMismatch(lock.key, lock.limit)); // it was lowered
        continue;
      } else if (isAlive && !lock.fits(first.modeRequest)) {
        break;
      }
      lock.takeFirst();
      this.#deadlines.cancel(first);
      if (isAlive) {
        this.#grant(lock, first);
      } else {
        first.settle(held(lock, this.#clock.now(), 0));
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

  /** Raises the expiry to `ttlMs` from now; never brings it forward. */
  extend(entry: HolderEntry, ttlMs: number): Validity {
    const sent = instantNow(this.#clock);
    if (sent.now + ttlMs > entry.dueAt) {
      this.#expiries.schedule(entry, sent.now + ttlMs);
    }
    return validFrom(sent, ttlMs);
  }

  /** @param instance who waits for latches */
  state(key: string, instance: string): LockState {
    const latch = this.latches.at(key);
    if (latch) {
      return latch.state(this.#clock.now(), instance);
    }
    const lock = this.lockAt(key) ?? new MemoryLock(key, modeRequestOf(undefined));
    return lock.state(this.#clock.now());
  }

  heldKeys(prefix: string): string[] {
    const keys = [...this.#locks.keys(), ...this.latches.keys()];
    return keys.filter(
      (key) => key.startsWith(prefix) && (this.lockAt(key) ?? this.latches.at(key)) !== undefined,
    );
  }

  /** Forgets everything; who waits is rejected `closed`. */
  close(): void {
    this.latches.close();
    const locks = [...this.#locks.values()];
    this.#locks.clear();
    this.#expiries.clear();
    this.#deadlines.clear();
    for (const lock of locks) {
      for (const waiter of lock.takeAll()) {
        waiter.reject(closedError(lock.key));
      }
    }
  }

  /** Another kind, or another limit, is refused while somebody holds or waits; not where it has waited and there is enough. */
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
    const takesAny = lockMode?.kind === "semaphore" && lockMode.hasWaited === true;
    const isRefused = present && present.limit !== limit && !(takesAny && weight <= present.limit);
    return isRefused ? limitMismatch(key, present.limit) : undefined;
  }

  #lockFor(key: string, modeRequest: ModeRequest): MemoryLock {
    const lock = new MemoryLock(key, modeRequest);
    this.#locks.set(key, lock);
    return lock;
  }

  #enqueue(lock: MemoryLock, request: AcquireRequest, instance: string): PendingAcquire {
    this.#arrivals += 1;
    const position = { ticket: request.ticket ?? this.ticket(), serial: this.#arrivals };
    const waiter = new MemoryWaiter(request, position, instance);
    lock.enqueue(waiter);
    this.grantNext(lock);
    if (!waiter.isSettled) {
      // A try that gave up a grant in the same step, and is not first, is over at once.
      this.#deadlines.schedule(waiter, request.deadline ?? this.#clock.now());
      publish("queued", () => ({ key: lock.key, position: lock.placeOf(waiter) }));
    }
    return {
      result: waiter.result,
      cancel: (reason) => {
        if (lock.dequeue(waiter) >= 0) {
          this.#deadlines.cancel(waiter);
          waiter.reject(reason);
          this.grantNext(lock); // for whoever stood behind it there may be room
        }
      },
    };
  }

  #timeOut(waiter: MemoryWaiter): void {
    const lock = this.lockAt(waiter.request.key);
    const position = lock?.dequeue(waiter) ?? -1;
    if (lock !== undefined && position >= 0) {
      waiter.settle(held(lock, this.#clock.now(), position));
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
    const entry = { lock, token, fence, weight, owner, info, localWaiters: 0, dueAt: -Infinity, slot: -1 };
    lock.addHolder(entry);
    const validity = this.extend(entry, ttlMs);
    const grant = { key, token, fencingToken: first, fencingCount, validity, isClaim: false };
    waiter.settle({ outcome: "granted", grant });
  }

  #wallMicros(): number {
    return Math.floor(this.#clock.wall() * 1000);
  }
}

function held(lock: MemoryLock, now: number, position?: number): AcquireResult {
  return { outcome: "held", holder: lock.state(now).holders[0], position };
}

function resolved(acquired: AcquireResult): PendingAcquire {
  return { result: Promise.resolve(acquired), cancel: () => undefined };
}
