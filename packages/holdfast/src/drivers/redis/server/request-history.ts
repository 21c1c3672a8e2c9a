import type { Outcome } from "../../../errors.ts";
import { outcomeOf } from "./errors.ts";

/** What is known of the repeated attempts of one request: how many there were, and what they may have left on the server. */
export class RequestHistory {
  count = 0;
  /** Those that failed since the last answer, and how the last one did. */
  failures = 0;
  lastError: unknown;
  wasAnswered = false;
  #inFlight = 0;
  #hasUnanswered = false;
  /** How many questions the server may still carry out: neither an answer over connections that stood nor a refusal came. */
  #pendingEffects = 0;
  #latest = 0;

  /** Unknown while one is under way, and once one got no answer, until a later one is answered. */
  get outcome(): Outcome {
    return this.#inFlight > 0 || this.#hasUnanswered ? "unknown" : "none";
  }

  /** The latest server time, ms, at which one of them may still take effect; 0: none can. */
  get latest(): number {
    return this.#pendingEffects > 0 ? this.#latest : 0;
  }

  /** @param latest server time, ms, behind which the question has no effect */
  sent(latest = 0): void {
    this.#inFlight += 1;
    this.#pendingEffects += 1;
    this.#latest = Math.max(this.#latest, latest);
  }

  /**
   * An answer, perhaps a late one, tells the state of the server.
   * @param sameConnection the client library cannot have sent the question twice
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
