import type { Clock } from "../../runtime/clock.ts";

interface Packet {
  readonly deliver: () => void;
  readonly dueAt: number;
}

/** One direction of a connection. It delivers packets in order, each after its delay, and none while frozen. */
export class DelayedLink {
  readonly #clock: Clock;
  readonly #inTransit: Packet[] = [];
  #isFrozen = false;
  #hasTimer = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Delivers at once if there is no delay and no earlier packet. */
  send(deliver: () => void, delayMs: number): void {
    if (!this.#isFrozen && delayMs === 0 && this.#inTransit.length === 0) {
      deliver();
      return;
    }
    this.#inTransit.push({ deliver, dueAt: this.#clock.now() + delayMs });
    this.#deliverDue();
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    this.#deliverDue();
  }

  #deliverDue(): void {
    while (!this.#isFrozen && !this.#hasTimer) {
      const first = this.#inTransit[0];
      if (first === undefined) {
        return;
      }
      const remainingMs = first.dueAt - this.#clock.now();
      if (remainingMs > 0) {
        this.#hasTimer = true;
        this.#clock.setTimer(() => {
          this.#hasTimer = false;
          this.#deliverDue();
        }, remainingMs);
        return;
      }
      this.#inTransit.shift();
      first.deliver();
    }
  }
}
