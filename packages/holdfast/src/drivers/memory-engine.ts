import { momentOf, type Clock } from "../clock.ts";
import { tell } from "../diagnostics.ts";
import type { Acquired, AcquireRequest, Grant, Pending } from "../driver.ts";
import { closedError } from "../errors.ts";
import type { Random } from "../random.ts";
import type { LockState } from "../state.ts";
import { TimerQueue } from "../timer-queue.ts";
import { validFrom, type Validity } from "../validity.ts";
import { holderOf, IdleFences, MemoryLock, MemoryWaiter, type Fence, type Holding } from "./memory-lock.ts";

/**
 * Who holds and who waits, key by key: everything that a server would do by itself, expiry included.
 * Between any two calls every lock that it knows has a holder; what is free is forgotten but for its numbers.
 */
export class MemoryEngine {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #changed: (key: string) => void;
  readonly #locks = new Map<string, MemoryLock>();
  readonly #idle = new IdleFences();
  readonly #expiries: TimerQueue<Holding>;
  readonly #deadlines: TimerQueue<MemoryWaiter>;
  #lastTicket = 0;
  #arrivals = 0;

  /** @param changed hears of every key whose state changed otherwise than by the passing of time or a renewal */
  constructor(clock: Clock, random: Random, changed: (key: string) => void) {
    this.#clock = clock;
    this.#random = random;
    this.#changed = changed;
    this.#expiries = new TimerQueue(clock, ({ lock }) => {
      this.at(lock.key);
    });
    this.#deadlines = new TimerQueue(
      clock,
      (waiter) => {
        this.#timeOut(waiter);
      },
      true, // somebody waits for it
    );
  }

  ticket(): number {
    this.#lastTicket = Math.max(this.#lastTicket + 1, this.#wallMicros());
    return this.#lastTicket;
  }

  /** @param instance who asks, unless the request has an owner of its own */
  ask(request: AcquireRequest, instance: string): Pending {
    const lock = this.at(request.key) ?? this.#open(request.key);
    const { holding } = lock;
    if (holding?.attemptId !== undefined && holding.attemptId === request.attemptId) {
      return answered(this.#claim(holding, request));
    }
    if (holding !== undefined && request.deadline === null) {
      return answered(held(lock, this.#clock.now()));
    }
    return this.#join(lock, request, instance);
  }

  /** The lock as it is now: a holder whose TTL has passed is gone, whether its timer ran or not. Undefined: free. */
  at(key: string): MemoryLock | undefined {
    const lock = this.#locks.get(key);
    if (lock?.holding !== undefined && lock.holding.dueAt <= this.#clock.now()) {
      this.end(lock.holding);
      this.serve(lock);
    }
    return this.#locks.get(key);
  }

  /** The grant in force, if it is that token's. */
  holdingOf(key: string, token: string): Holding | undefined {
    const holding = this.at(key)?.holding;
    return holding?.token === token ? holding : undefined;
  }

  /** Takes the lock from its holder. {@link serve} or {@link ask} has to follow in the same turn. */
  end(holding: Holding): void {
    this.#expiries.cancel(holding);
    holding.lock.holding = undefined;
  }

  /** Gives a free lock to the first in its queue whose deadline is still to come, or forgets it. */
  serve(lock: MemoryLock): void {
    while (lock.holding === undefined) {
      const first = lock.takeFirst();
      if (first === undefined) {
        this.#locks.delete(lock.key);
        this.#idle.keep(lock.key, lock.fence);
        break;
      }
      this.#deadlines.cancel(first);
      if (first.dueAt <= this.#clock.now()) {
        first.settle(held(lock, this.#clock.now(), 0));
      } else {
        this.#grant(lock, first);
      }
    }
    this.#changed(lock.key);
  }

  /** Raises the expiry to `ttlMs` from now; never brings it forward. */
  prolong(holding: Holding, ttlMs: number): Validity {
    const sent = momentOf(this.#clock);
    if (sent.now + ttlMs > holding.dueAt) {
      this.#expiries.schedule(holding, sent.now + ttlMs);
    }
    return validFrom(sent, ttlMs);
  }

  fenceOf(key: string): Fence | undefined {
    return this.at(key)?.fence ?? this.#idle.get(key);
  }

  state(key: string): LockState {
    const lock = this.at(key) ?? new MemoryLock(key, this.#idle.get(key));
    return lock.state(this.#clock.now());
  }

  heldKeys(prefix: string): string[] {
    return [...this.#locks.keys()].filter((key) => key.startsWith(prefix) && this.at(key) !== undefined);
  }

  /** Forgets everything; who waits is rejected `closed`. */
  close(): void {
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

  #open(key: string): MemoryLock {
    const lock = new MemoryLock(key, this.#idle.take(key));
    this.#locks.set(key, lock);
    return lock;
  }

  #join(lock: MemoryLock, request: AcquireRequest, instance: string): Pending {
    this.#arrivals += 1;
    const place = { ticket: request.ticket ?? this.ticket(), serial: this.#arrivals };
    const waiter = new MemoryWaiter(request, place, instance);
    lock.join(waiter);
    this.serve(lock);
    if (!waiter.isSettled) {
      // A try that gave up a grant in the same step, and is not first, is over at once.
      this.#deadlines.schedule(waiter, request.deadline ?? this.#clock.now());
      tell("queued", () => ({ key: lock.key, position: lock.placeOf(waiter) }));
    }
    return {
      result: waiter.result,
      cancel: (reason) => {
        if (lock.leave(waiter) >= 0) {
          this.#deadlines.cancel(waiter);
          this.#changed(lock.key);
          waiter.reject(reason);
        }
      },
    };
  }

  #timeOut(waiter: MemoryWaiter): void {
    const lock = this.at(waiter.request.key);
    const position = lock?.leave(waiter) ?? -1;
    if (lock !== undefined && position >= 0) {
      this.#changed(lock.key);
      waiter.settle(held(lock, this.#clock.now(), position));
    }
  }

  #grant(lock: MemoryLock, waiter: MemoryWaiter): void {
    const { attemptId, want, words } = waiter.request;
    const newest = lock.fence?.last ?? this.#idle.floor;
    const now = BigInt(this.#wallMicros());
    const first = now > newest ? now : newest + 1n;
    const fence = { first, current: first, last: first + BigInt(want - 1) };
    const token = this.#random.id();
    const owner = waiter.instance;
    const holding = { lock, token, fence, attemptId, owner, words, dueAt: -Infinity, slot: -1 };
    lock.holding = holding;
    lock.fence = fence;
    waiter.settle(this.#claim(holding, waiter.request));
    if (attemptId !== undefined) {
      for (const repeat of lock.takeAttempt(attemptId)) {
        this.#deadlines.cancel(repeat);
        repeat.settle(this.#claim(holding, repeat.request));
      }
    }
  }

  /** The grant in force, for a request that it is the answer to. */
  #claim(holding: Holding, request: AcquireRequest): Acquired {
    const { first, last } = holding.fence;
    const grant: Grant = {
      key: request.key,
      token: holding.token,
      fencingToken: first,
      fencingCount: Number(last - first) + 1,
      validity: this.prolong(holding, request.ttlMs),
      isClaim: false,
    };
    return { outcome: "granted", grant };
  }

  #wallMicros(): number {
    return Math.floor(this.#clock.wall() * 1000);
  }
}

function held({ holding }: MemoryLock, now: number, position?: number): Acquired {
  return { outcome: "held", holder: holding && holderOf(holding, now), position };
}

function answered(acquired: Acquired): Pending {
  return { result: Promise.resolve(acquired), cancel: () => undefined };
}
