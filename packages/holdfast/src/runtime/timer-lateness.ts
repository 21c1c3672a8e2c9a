import type { Clock } from "./clock.ts";

/** The smallest lead of a deadline's timer. A timer that counts whole milliseconds may run this late. */
const minLeadMs = 2;
const maxLeadMs = 50;
const windowMs = 30_000;

/** Records how late the timers of this process run, and computes the lead of a deadline's timer from it. */
export class TimerLateness {
  readonly #clock: Clock;
  #windowStart: number;
  #maxMs = 0;
  #previousMaxMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowStart = clock.now();
  }

  /** Records that a timer with the time `dueAt` runs now. */
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
   * The largest lateness of the present and the previous window, plus 2 ms. The lead is at most a twentieth of the TTL and 50 ms,
   * because one blocked event loop must not shorten leases further.
   */
  leadMs(ttlMs: number): number {
    return Math.min(minLeadMs + Math.max(this.#maxMs, this.#previousMaxMs), ttlMs / 20, maxLeadMs);
  }
}
