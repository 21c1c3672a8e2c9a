import type { Vote } from "./vote.ts";

/**
 * The votes of one node that a bid gives back, as a rival that came earlier asks for them. From the moment that one is given back a
 * vote of that node counts only with a greater number, however it arrives.
 */
export class Yielding {
  /** The number of the last one that was given back. */
  #yielded = 0;
  /** No answer says yet that it was: until then every question is that. */
  #isUnderWay = false;
  /** The number of an inquiry that came before the vote that it asks back. */
  #inquired = 0;

  /** A rival asks the vote with this number back. One that is not here yet is remembered. @returns whether that is news */
  inquired(number: number): boolean {
    if (number <= this.#yielded) {
      return false;
    }
    this.#inquired = Math.max(this.#inquired, number);
    return true;
  }

  isAskedFor(vote: Vote): boolean {
    return this.#inquired >= vote.first;
  }

  /** What was asked for is given back, with the next question. */
  begin(): void {
    this.#yielded = this.#inquired;
    this.#isUnderWay = true;
  }

  /** The number of the vote that the next question gives back; 0: none is. */
  get number(): number {
    return this.#isUnderWay ? this.#yielded : 0;
  }

  /** A question that gave the vote with this number back was answered. */
  answered(number: number): void {
    this.#isUnderWay &&= number !== this.#yielded;
  }

  hasGivenBack(vote: Vote): boolean {
    return vote.first <= this.#yielded;
  }

  /** Something was given back at some time. */
  get hasBegun(): boolean {
    return this.#yielded > 0;
  }
}
