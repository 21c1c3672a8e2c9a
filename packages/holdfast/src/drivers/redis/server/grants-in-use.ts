import type { Clock } from "../../../runtime/clock.ts";
import { TimerQueue, type Timed } from "../../../runtime/timer-queue.ts";
import type { Attempts } from "./request-history.ts";
import { TokenTable } from "../../../runtime/token-map.ts";

/** A grant that a request of this process was given, and of which a late message or reply may still come. */
export class Use implements Timed {
  dueAt = 0;
  slot = -1;
  /** This process has released it or passed it on. */
  isOver = false;
  readonly token: string;
  /** Of the request that was given it. */
  readonly attempts: Attempts;

  constructor(token: string, attempts: Attempts) {
    this.token = token;
    this.attempts = attempts;
  }
}

/**
 * The grants that this process uses and that the server may tell it about once more, by token. A grant stays until it is released,
 * passed on, or has expired. Their number has no bound but that of the leases: without its entry, a late message of a lease in use
 * looks like a grant without an owner, and the process would release its own lease.
 */
export class GrantsInUse {
  readonly #clock: Clock;
  readonly #uses = new TokenTable<Use>();
  readonly #ends: TimerQueue<Use>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#ends = new TimerQueue(clock, ({ token }) => this.#uses.delete(token));
  }

  has(token: string): boolean {
    return this.#uses.get(token) !== undefined;
  }

  add(token: string, ttlMs: number, attempts: Attempts): Use {
    const use = this.#uses.get(token) ?? new Use(token, attempts);
    this.#uses.set(token, use);
    this.#keep(use, ttlMs);
    return use;
  }

  /** An extension is sent: the server may keep the grant for so long from now. */
  prolong(token: string, ttlMs: number): void {
    const use = this.#uses.get(token);
    if (use) {
      this.#keep(use, ttlMs);
    }
  }

  /** @returns the latest server time, ms, at which a request for it may still be carried out; 0: none is under way */
  end(token: string): number {
    const use = this.#uses.get(token);
    if (!use) {
      return 0;
    }
    use.isOver = true;
    this.#uses.delete(token);
    this.#ends.cancel(use);
    return use.attempts.latest;
  }

  close(): void {
    this.#ends.clear();
  }

  /** Twice the TTL: a message that comes later is older than its grant's TTL by any clock, and is not acted on (see `isExpired`). */
  #keep(use: Use, ttlMs: number): void {
    this.#ends.schedule(use, Math.max(use.dueAt, this.#clock.now() + 2 * ttlMs));
  }
}
