import type { Clock } from "./clock.ts";

/** A deadline's timer is due earlier by at least so much: a timer that counts whole milliseconds may run this late. */
const leastLeadMs = 2;
const longestLeadMs = 50;
const windowMs = 30_000;

/** How late the timers of this process run, and how much earlier a deadline's timer is therefore due. */
export class Lateness {
  readonly #clock: Clock;
  #since: number;
  #worstMs = 0;
  #worstBeforeMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** A timer that was due at `dueAt` runs now. */
  note(dueAt: number): void {
    const now = this.#clock.now();
    if (now - this.#since >= windowMs) {
      this.#worstBeforeMs = now - this.#since < 2 * windowMs ? this.#worstMs : 0;
      this.#worstMs = 0;
      this.#since = now;
    }
    this.#worstMs = Math.max(this.#worstMs, now - dueAt);
  }

  /**
   * The worst lateness of this window and the one before, and 2 ms. At most a twentieth of the TTL and 50 ms: a lease is not cut
   * short by more because the event loop was blocked once.
   */
  leadMs(ttlMs: number): number {
    return Math.min(leastLeadMs + Math.max(this.#worstMs, this.#worstBeforeMs), ttlMs / 20, longestLeadMs);
  }
}
