import type { Outcome } from "../../../errors.ts";
import { outcomeOf } from "./errors.ts";
import type { EarlierRequests } from "./releases.ts";

/** The repeats of one request: their number, their failures, and whether one of them may still take effect on the server. */
export class RequestHistory implements EarlierRequests {
  count = 0;
  /** The number of failures since the last reply. */
  failures = 0;
  lastError: unknown;
  wasAnswered = false;
  #inFlight = 0;
  #hasUnanswered = false;
  /** How many repeats the server may still execute. A reply on the same connection, or a refusal, excludes a later execution. */
  #pendingEffects = 0;
  #latest = 0;

  /** Unknown while a repeat is in flight, and after a repeat without a reply, until a later reply. */
  get outcome(): Outcome {
    return this.#inFlight > 0 || this.#hasUnanswered ? "unknown" : "none";
  }

  /** The latest server time, ms, at which a repeat may still take effect. 0: no repeat can. */
  get latest(): number {
    return this.#pendingEffects > 0 ? this.#latest : 0;
  }

  /** @param latest the server time, ms, after which this repeat has no effect */
  sent(latest = 0): void {
    this.#inFlight += 1;
    this.#pendingEffects += 1;
    this.#latest = Math.max(this.#latest, latest);
  }

  /**
   * A reply, even a late one, reports the state of the server.
   * @param sameConnection the client library cannot have sent this repeat twice
   */
  answered(sameConnection = true): void {
    this.#ended();
    this.#pendingEffects -= sameConnection ? 1 : 0;
    this.#hasUnanswered = false;
    this.wasAnswered = true;
    this.failures = 0;
    this.lastError = undefined;
  }

  failed(error: unknown): void {
    this.#ended();
    const isUnknown = outcomeOf(error) === "unknown";
    this.#hasUnanswered ||= isUnknown;
    this.#pendingEffects -= isUnknown ? 0 : 1;
  }

  #ended(): void {
    this.#inFlight = Math.max(0, this.#inFlight - 1);
  }
}
