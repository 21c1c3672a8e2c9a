import type { Clock, Instant } from "../../../runtime/clock.ts";

/** How much better a new estimate seems with each millisecond that the old one ages: clocks drift. */
const agingPerMs = 0.0001;
/** How far two clocks may drift apart, and be off by their grain, before one of them must have been set. */
const driftRate = 0.001;
/** The largest drift that the guarantees allow: a clock within it was not set. */
const allowedDriftRate = 0.01;
const grainMs = 1;
const suspendedMs = 50;

/** What was thought of a server's clock at some moment. */
export interface TimeEstimate {
  readonly offsetMicros: number;
  readonly errorMs: number;
  /** On the scale of `clock.now()`. */
  readonly at: number;
}

/** The last place in a queue that was taken: of servers whose places must not repeat each other. */
export class TicketCounter {
  last = 0;
}

/**
 * An estimate of a server's clock, from the times in its replies: each was read between the sending and the receipt.
 * The shortest round trip tells most. Good enough for places in a queue; the validity of a grant never stands on it.
 */
export class ServerClock {
  readonly #clock: Clock;
  #offsetMicros: number | undefined;
  #errorMs = Infinity;
  #at = 0;
  /** The wall clock less the monotonic one when it was asked for: they part where the machine slept, and then the estimate is of no use. */
  #wallLead = 0;
  readonly #tickets: TicketCounter;

  constructor(clock: Clock, tickets: TicketCounter = new TicketCounter()) {
    this.#clock = clock;
    this.#tickets = tickets;
  }

  get isKnown(): boolean {
    return this.#offsetMicros !== undefined;
  }

  observe(serverMicros: number, sent: Instant, receivedAt: number): void {
    const errorMs = (receivedAt - sent.now) / 2;
    const offsetMicros = serverMicros - (sent.now + errorMs) * 1000;
    const isStale = this.#isStale(this.#clock.now());
    const ageMs = receivedAt - this.#at;
    // Beyond what clocks drift apart, as a request keeps its place within that: a later one must not go before it.
    if (isStale || this.#isContradictedBy(offsetMicros, errorMs, ageMs * allowedDriftRate + suspendedMs)) {
      this.#tickets.last = 0; // places of the wrong estimate may all be ahead of the time
    }
    if (
      errorMs <= this.#errorMs + ageMs * agingPerMs ||
      this.#isContradictedBy(offsetMicros, errorMs, ageMs * driftRate + grainMs) ||
      isStale
    ) {
      this.#offsetMicros = offsetMicros;
      this.#errorMs = errorMs;
      this.#at = receivedAt;
      this.#wallLead = sent.wall - sent.now; // the machine may have slept on the way
    }
  }

  /** The server's clock less `clock.now()`, in microseconds; undefined: not known yet. */
  get offsetMicros(): number | undefined {
    return this.#offsetMicros;
  }

  /** By how much the estimate may be wrong at the most, ms; infinite where nothing is known of the present. */
  get errorMs(): number {
    const now = this.#clock.now();
    return this.#isStale(now) ? Infinity : this.#errorMs + (now - this.#at) * driftRate;
  }

  /** By how much the estimate of the server's time in `waitMs` may be wrong, ms, if both clocks keep within the drift that is allowed. */
  errorAfterMs(waitMs: number): number {
    const now = this.#clock.now();
    const errorMs = this.#isStale(now) || this.#errorMs === Infinity ? suspendedMs : this.#errorMs;
    const ageMs = this.isKnown ? now - this.#at : 0;
    return errorMs + (ageMs + waitMs) * allowedDriftRate;
  }

  /** Whether the present is known: the machine has not slept since the last answer, and the connection has stood. */
  get isCertain(): boolean {
    return this.isKnown && this.errorMs !== Infinity;
  }

  /** What is thought of the clock now, for {@link contradicts}. */
  estimate(): TimeEstimate {
    const now = this.#clock.now();
    // A caller that asks after a pause keeps its place, although two clocks have drifted apart meanwhile.
    const driftMs = (now - this.#at) * (allowedDriftRate - driftRate);
    return { offsetMicros: this.#offsetMicros ?? 0, errorMs: this.errorMs + driftMs, at: now };
  }

  /** Whether answers since have shown that an estimate was wrong by more than its error: times that were written by it are wrong. */
  contradicts({ offsetMicros, errorMs, at }: TimeEstimate): boolean {
    const apartMs = Math.abs((this.#offsetMicros ?? offsetMicros) - offsetMicros) / 1000;
    const driftMs = (this.#clock.now() - at) * allowedDriftRate;
    return apartMs > errorMs + this.errorMs + driftMs + grainMs;
  }

  /** After a reconnect the server may be another one. */
  invalidate(): void {
    this.#errorMs = Infinity;
  }

  /** Microseconds since the epoch. */
  micros(): number {
    return Math.floor(this.#clock.now() * 1000 + (this.#offsetMicros ?? 0));
  }

  /** The earliest that the server's clock can show now. */
  earliestMicros(): number {
    const { errorMs } = this;
    return this.micros() - (errorMs === Infinity ? 0 : Math.ceil(errorMs * 1000));
  }

  #isStale(now: number): boolean {
    return Math.abs(this.#clock.wall() - now - this.#wallLead) > suspendedMs;
  }

  /** One of the clocks was set since: a worse estimate of now is better than a good one of then. */
  #isContradictedBy(offsetMicros: number, errorMs: number, byMs: number): boolean {
    const apartMs = Math.abs(offsetMicros - (this.#offsetMicros ?? offsetMicros)) / 1000;
    return apartMs > errorMs + this.#errorMs + byMs;
  }

  /** A place in the queue for who arrives now: strictly increasing in this process, in order of arrival between processes. */
  ticket(): number {
    this.#tickets.last = Math.max(this.#tickets.last + 1, this.micros());
    return this.#tickets.last;
  }
}
