import type { Clock } from "../../../runtime/clock.ts";
import { TimerQueue, type Scheduled } from "../../../runtime/timer-queue.ts";
import type { RequestHistory } from "./request-history.ts";
import { TokenMap } from "../../../runtime/token-map.ts";

/** A grant in use by this process. A late notification or reply may report the grant again. */
export class GrantInUse implements Scheduled {
  dueAt = 0;
  slot = -1;
  /** This process has released the grant, or the grant has expired. */
  isEnded = false;
  readonly token: string;
  /** The history of the request that got the grant. */
  readonly history: RequestHistory;

  constructor(token: string, history: RequestHistory) {
    this.token = token;
    this.history = history;
  }
}

/**
 * The grants in use by this process that the server may report again, by token. A grant is removed when it is released or has expired.
 *
 * The number of grants is bounded only by the number of leases. Without its entry, a late notification of a lease looks like a grant
 * without an owner, and the process would release its own lease.
 */
export class GrantsInUse {
  readonly #clock: Clock;
  readonly #grants = new TokenMap<GrantInUse>();
  readonly #expiries: TimerQueue<GrantInUse>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#expiries = new TimerQueue(clock, (grant) => {
      grant.isEnded = true; // a request that is executed after this time leaves a grant to remove
      this.#grants.delete(grant.token);
    });
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

  /** An extension is sent. The server may keep the grant for `ttlMs` from now. */
  extend(token: string, ttlMs: number): void {
    const grant = this.#grants.get(token);
    if (grant) {
      this.#scheduleExpiry(grant, ttlMs);
    }
  }

  /** @returns the requests for the grant that the server may still execute; undefined: none */
  end(token: string): RequestHistory | undefined {
    const grant = this.#grants.get(token);
    if (!grant) {
      return undefined;
    }
    grant.isEnded = true;
    this.#grants.delete(token);
    this.#expiries.cancel(grant);
    return grant.history.latest > 0 ? grant.history : undefined;
  }

  close(): void {
    this.#expiries.clear();
  }

  /** After twice the TTL. A notification that arrives later is older than its grant's TTL by any clock, and is ignored (see `isExpired`). */
  #scheduleExpiry(grant: GrantInUse, ttlMs: number): void {
    this.#expiries.schedule(grant, Math.max(grant.dueAt, this.#clock.now() + 2 * ttlMs));
  }
}
