import type { ServerClock } from "@holdfast/test-kit";

/** The wall clock of one process, which a run sets. */
export class ChaosClock {
  readonly #clock: ServerClock | undefined;
  #time: { aheadMs: number; rate: number; since: number } = { aheadMs: 0, rate: 1, since: Date.now() };

  /** @param clock undefined: the process has the clock of the machine, and settings have no effect */
  constructor(clock: ServerClock | undefined) {
    this.#clock = clock;
  }

  /** Moves the clock forward by this time. */
  step(ms: number): void {
    this.#set({ aheadMs: this.#aheadMs() + ms });
  }

  /** Lets the clock continue at another speed. */
  setRate(rate: number): void {
    this.#set({ rate });
  }

  #aheadMs(): number {
    const { aheadMs, rate, since } = this.#time;
    // While the server is down, it loses its lead instead of gaining more, because a clock that moves forward expires keys early.
    return Math.floor(aheadMs + (rate - 1) * (Date.now() - since));
  }

  #set({ aheadMs = this.#aheadMs(), rate = 1 }: { aheadMs?: number; rate?: number }): void {
    this.#time = { aheadMs, rate, since: Date.now() };
    this.#clock?.set({ aheadMs, rate });
  }
}
