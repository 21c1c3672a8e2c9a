import type { Outcome } from "../../../errors.ts";
import { outcomeOf } from "./errors.ts";

/** What is known of the repeated attempts of one request: how many there were, and what they may have left on the server. */
export class Attempts {
  count = 0;
  /** Those that failed since the last answer, and how the last one did. */
  failures = 0;
  lastError: unknown;
  wasAnswered = false;
  #underWay = 0;
  #wasUnanswered = false;
  /** How many questions the server may still carry out: neither an answer over connections that stood nor a refusal came. */
  #loose = 0;
  #latest = 0;

  /** Unknown while one is under way, and once one got no answer, until a later one is answered. */
  get outcome(): Outcome {
    return this.#underWay > 0 || this.#wasUnanswered ? "unknown" : "none";
  }

  /** The latest server time, ms, at which one of them may still take effect; 0: none can. */
  get latest(): number {
    return this.#loose > 0 ? this.#latest : 0;
  }

  /** @param latest server time, ms, behind which the question has no effect */
  sent(latest = 0): void {
    this.#underWay += 1;
    this.#loose += 1;
    this.#latest = Math.max(this.#latest, latest);
  }

  /**
   * An answer, perhaps a late one, tells the state of the server.
   * @param isSteady the client library cannot have sent the question twice
   */
  answered(isSteady = true): void {
    this.#ended();
    this.#loose -= isSteady ? 1 : 0;
    this.#wasUnanswered = false;
    this.wasAnswered = true;
    this.failures = 0;
    this.lastError = undefined;
  }

  failed(error: unknown): void {
    this.#ended();
    const isUnknown = outcomeOf(error) === "unknown";
    this.#wasUnanswered ||= isUnknown;
    this.#loose -= isUnknown ? 0 : 1;
  }

  #ended(): void {
    this.#underWay = Math.max(0, this.#underWay - 1);
  }
}
