import type { Clock } from "../../runtime/clock.ts";

/**
 * Decides when a driver removes old lock rows. A sweep is due at a release, once in each period. If a sweep removed as many rows as it
 * may, more rows are left. The next sweep is then due after half as many releases, so that sweeps are faster than new keys.
 * The first sweep is due after as few releases, because a program may end before the period does.
 */
export class SweepSchedule {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #maxRows: number;
  #dueAt: number;
  #releases = 0;
  /** Old rows may be left. At the start this is not known. */
  #hasMore = true;

  /** @param maxRows the largest number of rows that one sweep removes */
  constructor(clock: Clock, everyMs: number, maxRows: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#maxRows = maxRows;
    this.#dueAt = clock.now() + everyMs;
  }

  /** Counts a release. @returns whether a sweep is due */
  released(): boolean {
    this.#releases += 1;
    const now = this.#clock.now();
    const isDue = now >= this.#dueAt || (this.#hasMore && this.#releases >= this.#maxRows / 2);
    if (isDue) {
      this.#releases = 0;
      this.#hasMore = false;
      this.#dueAt = now + this.#everyMs;
    }
    return isDue;
  }

  swept(rows: number): void {
    this.#hasMore = rows >= this.#maxRows;
  }
}
