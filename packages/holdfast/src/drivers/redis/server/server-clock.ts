import {
  type Clock,
  elapsedBetween,
  elapsedSince,
  type Instant,
  instantNow,
} from "../../../runtime/clock.ts";

/** How much error a new estimate may add for each millisecond of the old one's age, because clocks drift. */
const agingPerMs = 0.0001;
/** How far two clocks may drift apart. With {@link grainMs}, a larger difference means that one of the clocks was set. */
const driftRate = 0.001;
/** The largest drift that the guarantees allow. A clock within this drift was not set. */
const allowedDriftRate = 0.01;
const grainMs = 1;
const suspendedMs = 50;

/** How long after its `commandTimeoutMs` a server may still execute an operation. */
const maxDelayMs = 3_000;

/** How long after its sending an operation may take effect, ms. */
export function longestDelayMs(commandTimeoutMs: number): number {
  return commandTimeoutMs + maxDelayMs;
}

/** The latest server time, ms, at which an operation that is sent at `sentMs` may take effect. */
export function latestTime(sentMs: number, commandTimeoutMs: number): string {
  return String(sentMs + longestDelayMs(commandTimeoutMs));
}

/** The estimate of a server's clock at one moment. */
export interface TimeEstimate {
  readonly offsetMicros: number;
  readonly errorMs: number;
  /** On the scale of `clock.now()`. */
  readonly at: number;
}

/** The last ticket. Servers that share a counter never give the same ticket twice. */
export class TicketCounter {
  last = 0;
}

/**
 * Estimates a server's clock from the times in its replies. The server read each time between the sending and the receipt, so the
 * shortest round trip gives the best estimate. Tickets use the estimate. The validity of a grant never depends on it.
 */
export class ServerClock {
  readonly #clock: Clock;
  #offsetMicros: number | undefined;
  #errorMs = Infinity;
  #at = 0;
  /** The wall clock minus the monotonic clock at the last estimate. If the machine slept, the difference changes and the estimate is void. */
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
    const isStale = this.#isStale(instantNow(this.#clock));
    const ageMs = receivedAt - this.#at;
    // A request keeps its ticket within the allowed drift. A later request must not get a smaller ticket, so only more than that resets.
    if (isStale || this.#isContradictedBy(offsetMicros, errorMs, ageMs * allowedDriftRate + suspendedMs)) {
      this.#tickets.last = 0; // tickets of the wrong estimate may lie in the future
    }
    if (
      errorMs <= this.#errorMs + ageMs * agingPerMs ||
      this.#isContradictedBy(offsetMicros, errorMs, ageMs * driftRate + grainMs) ||
      isStale
    ) {
      this.#offsetMicros = offsetMicros;
      this.#errorMs = errorMs;
      this.#at = receivedAt;
      this.#wallLead = sent.wall - sent.now; // at the sending, because the machine may have slept since
    }
  }

  /** The server's clock minus `clock.now()`, in microseconds. Undefined before the first reply. */
  get offsetMicros(): number | undefined {
    return this.#offsetMicros;
  }

  /** The largest error of the estimate, ms. Infinite if the machine slept since the last reply, or the connection was lost. */
  get errorMs(): number {
    return this.#errorAt(instantNow(this.#clock));
  }

  #errorAt(at: Instant): number {
    return this.#isStale(at) ? Infinity : this.#errorMs + (at.now - this.#at) * driftRate;
  }

  /** The largest error of the estimate after a wait of `waitMs`, ms, if both clocks stay within the allowed drift. */
  errorAfterMs(waitMs: number, at: Instant = instantNow(this.#clock)): number {
    const errorMs = this.#isStale(at) || this.#errorMs === Infinity ? suspendedMs : this.#errorMs;
    const ageMs = this.isKnown ? at.now - this.#at : 0;
    return errorMs + (ageMs + waitMs) * allowedDriftRate;
  }

  /** Whether the error is finite: since the last reply the machine did not sleep, and the connection was not lost. */
  get isCertain(): boolean {
    return this.isKnown && this.errorMs !== Infinity;
  }

  /** The present estimate, for {@link contradicts}. */
  estimate(instant: Instant = instantNow(this.#clock)): TimeEstimate {
    const { now } = instant;
    // The clocks may have drifted apart since the last reply. A request that is sent after a pause must still keep its queue entry.
    const driftMs = (now - this.#at) * (allowedDriftRate - driftRate);
    return { offsetMicros: this.#offsetMicros ?? 0, errorMs: this.#errorAt(instant) + driftMs, at: now };
  }

  /** Whether later replies have shown that the estimate was wrong by more than its error. Times computed from it are then wrong. */
  contradicts({ offsetMicros, errorMs, at }: TimeEstimate): boolean {
    const apartMs = Math.abs((this.#offsetMicros ?? offsetMicros) - offsetMicros) / 1000;
    const instant = instantNow(this.#clock);
    const driftMs = (instant.now - at) * allowedDriftRate;
    return apartMs > errorMs + this.#errorAt(instant) + driftMs + grainMs;
  }

  /** Voids the estimate, because after a reconnect the server may be another one. */
  invalidate(): void {
    this.#errorMs = Infinity;
  }

  /** Microseconds since the epoch. */
  micros(now: number = this.#clock.now()): number {
    return Math.floor(now * 1000 + (this.#offsetMicros ?? 0));
  }

  /** The offset of the server's clock to the local wall clock, ms. Undefined before the first reply. */
  wallOffsetMs(): number | undefined {
    return this.isKnown ? this.micros() / 1000 - this.#clock.wall() : undefined;
  }

  /** The earliest time that the server's clock can show now, in microseconds. */
  earliestMicros(at: Instant = instantNow(this.#clock)): number {
    const errorMs = this.#errorAt(at);
    return this.micros(at.now) - (errorMs === Infinity ? 0 : Math.ceil(errorMs * 1000));
  }

  #isStale({ now, wall }: Instant): boolean {
    return Math.abs(wall - now - this.#wallLead) > suspendedMs;
  }

  /** Whether one of the clocks was set since the estimate. A new estimate with a larger error is then better than the old one. */
  #isContradictedBy(offsetMicros: number, errorMs: number, byMs: number): boolean {
    const apartMs = Math.abs(offsetMicros - (this.#offsetMicros ?? offsetMicros)) / 1000;
    return apartMs > errorMs + this.#errorMs + byMs;
  }

  /** A ticket for a waiter that arrives now. Tickets rise strictly in this process. Between processes they follow the order of arrival. */
  ticket(): number {
    this.#tickets.last = Math.max(this.#tickets.last + 1, this.micros());
    return this.#tickets.last;
  }
}

/** A pushed grant older than this is not trusted. A request confirms it. */
const maxAgeMs = 250;
const messageDriftRate = 0.01;
const freshMs = 2_000;

interface ServerTimeSample {
  readonly runId: string;
  readonly serverMicros: number;
  readonly sent: Instant;
}

/**
 * Estimates the age of a pushed grant, because the waiter does not know when its TTL began. The estimate uses a sample: an earlier reply
 * had server time T, and its request was sent at local time s. So server time G was at local time s + (G − T) or later, minus the drift.
 *
 * A sample is valid only for the same run of the server, and only until one of the two connections is lost.
 */
export class GrantAgeEstimator {
  readonly #clock: Clock;
  #sample: ServerTimeSample | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A reply to a request that was sent at `sent` had the time `serverMicros`. Kept if its estimate is better than the present one. */
  observe(runId: string, serverMicros: number, sent: Instant): void {
    const known = this.#sample;
    const knownAgeMs = known?.runId === runId ? this.#ageIn(known, serverMicros, sent) : undefined;
    if (knownAgeMs === undefined || knownAgeMs >= 0) {
      this.#sample = { runId, serverMicros, sent };
    }
  }

  /** Whether the sample is recent. Then the reply needs no run ID, which would cost the server a command. */
  get isFresh(): boolean {
    return this.#sample !== undefined && elapsedSince(this.#sample.sent, this.#clock) < freshMs;
  }

  /** Discards the sample, because after a lost connection the next server time may be another server's. */
  discard(): void {
    this.#sample = undefined;
  }

  /**
   * The largest age, ms, at the time `at`, of a grant that the server made at `serverMicros`.
   * Undefined if the age is unknown, implausible, or more than 250 ms. The grant must then be confirmed.
   * @param at one reading of the clocks. The validity must count from the same reading: a pause between two readings would lengthen it
   */
  ageOf(runId: string, serverMicros: number, at: Instant): number | undefined {
    const bracket = this.#sample;
    if (bracket?.runId !== runId) {
      return undefined;
    }
    const elapsedMs = elapsedBetween(bracket.sent, at) * (1 + messageDriftRate);
    const ageMs = elapsedMs - (serverMicros - bracket.serverMicros) / 1000;
    return ageMs >= 0 && ageMs <= maxAgeMs ? ageMs : undefined;
  }

  /** How long before `sent` the known sample places `serverMicros`. A new sample is better by that time. */
  #ageIn(known: ServerTimeSample, serverMicros: number, sent: Instant): number {
    const elapsedMs = elapsedBetween(known.sent, sent) * (1 + messageDriftRate);
    return elapsedMs - (serverMicros - known.serverMicros) / 1000;
  }
}
