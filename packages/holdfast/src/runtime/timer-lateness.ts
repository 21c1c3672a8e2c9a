import type { Clock } from "./clock.ts";

/** A deadline's timer is due earlier by at least so much: a timer that counts whole milliseconds may run this late. */
const minLeadMs = 2;
const maxLeadMs = 50;
const windowMs = 30_000;

/** How late the timers of this process run, and how much earlier a deadline's timer is therefore due. */
export class TimerLateness {
  readonly #clock: Clock;
  #windowStart: number;
  #maxMs = 0;
  #previousMaxMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowStart = clock.now();
  }

  /** A timer that was due at `dueAt` runs now. */
  record(dueAt: number): void {
    const now = this.#clock.now();
    if (now - this.#windowStart >= windowMs) {
      this.#previousMaxMs = now - this.#windowStart < 2 * windowMs ? this.#maxMs : 0;
      this.#maxMs = 0;
      this.#windowStart = now;
    }
    this.#maxMs = Math.max(this.#maxMs, now - dueAt);
  }

  /**
   * The worst lateness of this window and the one before, and 2 ms. At most a twentieth of the TTL and 50 ms: a lease is not cut
   * short by more because the event loop was blocked once.
   */
  leadMs(ttlMs: number): number {
    return Math.min(minLeadMs + Math.max(this.#maxMs, this.#previousMaxMs), ttlMs / 20, maxLeadMs);
  }
}
