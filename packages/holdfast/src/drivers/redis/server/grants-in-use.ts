import type { Clock } from "../../../runtime/clock.ts";
import { TimerQueue, type Scheduled } from "../../../runtime/timer-queue.ts";
import type { RequestHistory } from "./request-history.ts";
import { TokenMap } from "../../../runtime/token-map.ts";

/** A grant that a request of this process was given, and of which a late message or reply may still come. */
export class GrantInUse implements Scheduled {
  dueAt = 0;
  slot = -1;
  /** This process has released it or passed it on. */
  isEnded = false;
  readonly token: string;
  /** Of the request that was given it. */
  readonly history: RequestHistory;

  constructor(token: string, history: RequestHistory) {
    this.token = token;
    this.history = history;
  }
}

/**
 * The grants that this process uses and that the server may tell it about once more, by token. A grant stays until it is released,
 * passed on, or has expired. Their number has no bound but that of the leases: without its entry, a late message of a lease in use
 * looks like a grant without an owner, and the process would release its own lease.
 */
export class GrantsInUse {
  readonly #clock: Clock;
  readonly #grants = new TokenMap<GrantInUse>();
  readonly #expiries: TimerQueue<GrantInUse>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#expiries = new TimerQueue(clock, ({ token }) => this.#grants.delete(token));
  }

  has(token: string): boolean {
    return this.#grants.get(token) !== undefined;
  }

  add(token: string, ttlMs: number, history: RequestHistory): GrantInUse {
    const grant = this.#grants.get(token) ?? new GrantInUse(token, history);
    this.#grants.set(token, grant);
    this.#scheduleExpiry(grant, ttlMs);
    return grant;
  }

  /** An extension is sent: the server may keep the grant for so long from now. */
  extend(token: string, ttlMs: number): void {
    const grant = this.#grants.get(token);
    if (grant) {
      this.#scheduleExpiry(grant, ttlMs);
    }
  }

  /** @returns the latest server time, ms, at which a request for it may still be carried out; 0: none is under way */
  end(token: string): number {
    const grant = this.#grants.get(token);
    if (!grant) {
      return 0;
    }
    grant.isEnded = true;
    this.#grants.delete(token);
    this.#expiries.cancel(grant);
    return grant.history.latest;
  }

  close(): void {
    this.#expiries.clear();
  }

  /** Twice the TTL: a message that comes later is older than its grant's TTL by any clock, and is not acted on (see `isExpired`). */
  #scheduleExpiry(grant: GrantInUse, ttlMs: number): void {
    this.#expiries.schedule(grant, Math.max(grant.dueAt, this.#clock.now() + 2 * ttlMs));
  }
}
