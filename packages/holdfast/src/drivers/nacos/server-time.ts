import { elapsedSince, type Clock, type Instant } from "../../runtime/clock.ts";

/** The header `Date` counts whole seconds. */
const grainMs = 1_000;

/** The wall clock of the servers, by the header `Date` of their replies. */
export class ServerTime {
  readonly #clock: Clock;
  #learned: { readonly time: number; readonly sent: Instant } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param sent when the request was sent, which is before the server wrote the header */
  learn(time: number, sent: Instant): void {
    this.#learned = { time, sent };
  }

  /** The latest time that the servers may have now, ms; undefined: no server has reported its time. */
  now(): number | undefined {
    return (
      this.#learned && Math.ceil(this.#learned.time + grainMs + elapsedSince(this.#learned.sent, this.#clock))
    );
  }
}
