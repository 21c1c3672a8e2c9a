import type { Clock } from "holdfast";

/** How far the wall clock may be from where it should be before somebody must have set it, or the machine slept. */
const grainMs = 1;

/**
 * A server's own clock, in microseconds: it follows the wall clock within a millisecond, and goes on evenly where that moves by
 * whole milliseconds. Places in a queue are told apart by less.
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
