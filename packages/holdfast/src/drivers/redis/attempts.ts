import type { Outcome } from "../../errors.ts";
import { outcomeOf } from "./failures.ts";

/** What is known of the repeated attempts of one request: how many there were, and what they may have left on the server. */
export class Attempts {
  count = 0;
  /** Those that failed since the last answer, and how the last one did. */
  failures = 0;
  lastError: unknown;
  wasAnswered = false;
  #underWay = 0;
  #wasUnanswered = false;

  /** Unknown while one is under way, and once one got no answer, until a later one is answered. */
  get outcome(): Outcome {
    return this.#underWay > 0 || this.#wasUnanswered ? "unknown" : "none";
  }

  sent(): void {
    this.#underWay += 1;
  }

  /** An answer, perhaps a late one, tells the state of the server. */
  answered(): void {
    this.#ended();
    this.#wasUnanswered = false;
    this.wasAnswered = true;
    this.failures = 0;
    this.lastError = undefined;
  }

  failed(error: unknown): void {
    this.#ended();
    this.#wasUnanswered ||= outcomeOf(error) === "unknown";
  }

  #ended(): void {
    this.#underWay = Math.max(0, this.#underWay - 1);
  }
}
