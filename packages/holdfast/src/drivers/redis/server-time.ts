import type { Clock } from "../../clock.ts";

/** How much better a new estimate seems with each millisecond that the old one ages: clocks drift. */
const agingPerMs = 0.0001;

/**
 * An estimate of a server's clock, from the times in its replies: each was read between the sending and the receipt.
 * The shortest round trip tells most. Good enough for places in a queue; the validity of a grant never stands on it.
 */
export class ServerTime {
  readonly #clock: Clock;
  #offsetMicros: number | undefined;
  #errorMs = Infinity;
  #at = 0;
  #lastTicket = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isKnown(): boolean {
    return this.#offsetMicros !== undefined;
  }

  observe(serverMicros: number, sentAt: number, receivedAt: number): void {
    const errorMs = (receivedAt - sentAt) / 2;
    if (errorMs <= this.#errorMs + (receivedAt - this.#at) * agingPerMs) {
      this.#offsetMicros = serverMicros - (sentAt + errorMs) * 1000;
      this.#errorMs = errorMs;
      this.#at = receivedAt;
    }
  }

  /** After a reconnect the server may be another one. */
  doubt(): void {
    this.#errorMs = Infinity;
  }

  /** Microseconds since the epoch. */
  micros(): number {
    return Math.floor(this.#clock.now() * 1000 + (this.#offsetMicros ?? 0));
  }

  /** A place in the queue for who arrives now: strictly increasing in this process, in order of arrival between processes. */
  ticket(): number {
    this.#lastTicket = Math.max(this.#lastTicket + 1, this.micros());
    return this.#lastTicket;
  }
}
