import type { Clock, Timer } from "../../runtime/clock.ts";

/** A grant that this driver has written. */
export interface OwnGrant {
  readonly key: string;
  readonly token: string;
  readonly version: string;
  /** The end of its TTL, on the scale of `clock.now()`. */
  readonly until: number;
  /** The reply to its last extension was lost, so `until` is too late by an unknown time. */
  readonly isLate?: boolean;
  /** A release was sent and may have been executed. */
  isEnding?: boolean;
}

const retryMs = 1_000;

/**
 * The grants of one driver. The server does not know TTLs, so a driver removes its own grants when they have expired. The grants of a
 * crashed process are removed by waiters.
 */
export class OwnGrants {
  readonly #clock: Clock;
  readonly #remove: (expired: OwnGrant) => Promise<OwnGrant | undefined>;
  readonly #grants = new Map<string, { readonly grant: OwnGrant; readonly timer: Timer }>();
  #isClosed = false;

  /** @param remove removes an expired grant. It resolves with the present grant if this driver has extended the grant since */
  constructor(clock: Clock, remove: (expired: OwnGrant) => Promise<OwnGrant | undefined>) {
    this.#clock = clock;
    this.#remove = remove;
  }

  get(token: string): OwnGrant | undefined {
    return this.#grants.get(token)?.grant;
  }

  set(grant: OwnGrant): void {
    this.#schedule(grant, grant.until - this.#clock.now());
  }

  delete(token: string): void {
    this.#clock.clearTimer(this.#grants.get(token)?.timer);
    this.#grants.delete(token);
  }

  close(): void {
    this.#isClosed = true;
    for (const token of this.#grants.keys()) {
      this.delete(token);
    }
  }

  #schedule(grant: OwnGrant, delayMs: number): void {
    this.delete(grant.token);
    if (!this.#isClosed) {
      const timer = this.#clock.setTimer(() => void this.#expire(grant), Math.max(1, delayMs));
      this.#grants.set(grant.token, { grant, timer });
    }
  }

  async #expire(grant: OwnGrant): Promise<void> {
    const present = await this.#remove(grant).catch(() => null);
    if (this.get(grant.token) !== grant) {
      return; // the grant was extended or released
    }
    if (present === undefined) {
      this.delete(grant.token);
    } else {
      this.#schedule(present ?? grant, present ? present.until - this.#clock.now() : retryMs);
    }
  }
}
