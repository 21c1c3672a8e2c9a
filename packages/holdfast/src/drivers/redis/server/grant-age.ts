import { elapsedSince, type Clock, type Instant } from "../../../runtime/clock.ts";

/** A pushed grant this old is not trusted by its bracket; it is confirmed by a request. */
const maxAgeMs = 250;
const driftRate = 0.01;
const freshMs = 2_000;

interface ServerTimeSample {
  readonly runId: string;
  readonly serverMicros: number;
  readonly sent: Instant;
}

/**
 * How old a grant is that a message brought. The waiter does not know when its TTL began, but it knows a bracket: an earlier
 * reply carried server time T and was asked for at local time s, so server time G is at s + (G − T) or later, less the drift.
 * Counts only for the same run of the server, and while both connections have been up since.
 */
export class GrantAgeEstimator {
  readonly #clock: Clock;
  #sample: ServerTimeSample | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A reply to a request that was sent at `sent` carried `serverMicros`. Kept if it says more than the one we have. */
  observe(runId: string, serverMicros: number, sent: Instant): void {
    const known = this.#sample;
    const knownAgeMs = known?.runId === runId ? this.#ageIn(known, serverMicros, sent) : undefined;
    if (knownAgeMs === undefined || knownAgeMs >= 0) {
      this.#sample = { runId, serverMicros, sent };
    }
  }

  /** Whether another bracket would tell little more: most replies need not carry the run id, which costs the server a command. */
  get isFresh(): boolean {
    return this.#sample !== undefined && elapsedSince(this.#sample.sent, this.#clock) < freshMs;
  }

  /** A connection was lost: the next server time may be another server's. */
  discard(): void {
    this.#sample = undefined;
  }

  /**
   * The age in ms, at this moment and at the most, of what the server did at `serverMicros`.
   * Undefined where it is not known, not plausible, or too long ago: then the grant has to be confirmed.
   */
  ageOf(runId: string, serverMicros: number): number | undefined {
    const bracket = this.#sample;
    if (bracket?.runId !== runId) {
      return undefined;
    }
    const elapsedMs = elapsedSince(bracket.sent, this.#clock) * (1 + driftRate);
    const ageMs = elapsedMs - (serverMicros - bracket.serverMicros) / 1000;
    return ageMs >= 0 && ageMs <= maxAgeMs ? ageMs : undefined;
  }

  /** By how much the known bracket dates `serverMicros` before `sent`: a newer bracket is tighter by that. */
  #ageIn(known: ServerTimeSample, serverMicros: number, sent: Instant): number {
    const elapsedMs = Math.max(sent.now - known.sent.now, sent.wall - known.sent.wall) * (1 + driftRate);
    return elapsedMs - (serverMicros - known.serverMicros) / 1000;
  }
}
