import type { Clock } from "holdfast";

/** A larger difference to the expected wall clock means that the clock was set or the machine slept. */
const grainMs = 1;

/**
 * A server's clock in microseconds. It follows the wall clock within a millisecond, and advances evenly between the clock's steps
 * of whole milliseconds. Positions in a queue differ by less than a millisecond.
 */
export class ServerClock {
  readonly #clock: Clock;
  #anchor: { readonly now: number; readonly wall: number };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#anchor = { now: clock.now(), wall: clock.wall() };
  }

  micros(): number {
    const now = this.#clock.now();
    const wall = this.#clock.wall();
    const even = this.#anchor.wall + (now - this.#anchor.now);
    if (Math.abs(even - wall) > grainMs) {
      this.#anchor = { now, wall };
      return Math.round(wall * 1000);
    }
    return Math.round(even * 1000);
  }
}
