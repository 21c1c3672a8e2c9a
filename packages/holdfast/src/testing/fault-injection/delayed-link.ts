import type { Clock } from "../../runtime/clock.ts";

interface Passenger {
  readonly go: () => void;
  readonly dueAt: number;
}

/** One direction of one connection: what enters comes out in order, each not before its delay has passed, nothing while frozen. */
export class Lane {
  readonly #clock: Clock;
  readonly #under: Passenger[] = [];
  #isFrozen = false;
  #isTimed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Without a delay, and with nobody before, at once. */
  enter(go: () => void, delayMs: number): void {
    if (!this.#isFrozen && delayMs === 0 && this.#under.length === 0) {
      go();
      return;
    }
    this.#under.push({ go, dueAt: this.#clock.now() + delayMs });
    this.#move();
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    this.#move();
  }

  #move(): void {
    while (!this.#isFrozen && !this.#isTimed) {
      const first = this.#under[0];
      if (first === undefined) {
        return;
      }
      const leftMs = first.dueAt - this.#clock.now();
      if (leftMs > 0) {
        this.#isTimed = true;
        this.#clock.setTimer(() => {
          this.#isTimed = false;
          this.#move();
        }, leftMs);
        return;
      }
      this.#under.shift();
      first.go();
    }
  }
}
