import { elapsedBetween, elapsedSince, type Clock, type Instant } from "../../../runtime/clock.ts";

/** A pushed grant older than this is not trusted. A request confirms it. */
const maxAgeMs = 250;
const driftRate = 0.01;
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
    const elapsedMs = elapsedBetween(bracket.sent, at) * (1 + driftRate);
    const ageMs = elapsedMs - (serverMicros - bracket.serverMicros) / 1000;
    return ageMs >= 0 && ageMs <= maxAgeMs ? ageMs : undefined;
  }

  /** How long before `sent` the known sample places `serverMicros`. A new sample is better by that time. */
  #ageIn(known: ServerTimeSample, serverMicros: number, sent: Instant): number {
    const elapsedMs = elapsedBetween(known.sent, sent) * (1 + driftRate);
    return elapsedMs - (serverMicros - known.serverMicros) / 1000;
  }
}
