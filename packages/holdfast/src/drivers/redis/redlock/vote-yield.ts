import type { Vote } from "./vote.ts";

/**
 * The votes of one node that a bid gives back, as a rival that came earlier asks for them. From the moment that one is given back a
 * vote of that node counts only with a greater number, however it arrives.
 */
export class VoteYield {
  /** The number of the last one that was given back. */
  #yielded = 0;
  /** No answer says yet that it was: until then every question is that. */
  #isPending = false;
  /** The number of an inquiry that came before the vote that it asks back. */
  #requestedBack = 0;

  /** A rival asks the vote with this number back. One that is not here yet is remembered. @returns whether that is news */
  voteRequestedBack(number: number): boolean {
    if (number <= this.#yielded) {
      return false;
    }
    this.#requestedBack = Math.max(this.#requestedBack, number);
    return true;
  }

  isRequestedBack(vote: Vote): boolean {
    return this.#requestedBack >= vote.first;
  }

  /** What was asked for is given back, with the next question. */
  begin(): void {
    this.#yielded = this.#requestedBack;
    this.#isPending = true;
  }

  /** The number of the vote that the next question gives back; 0: none is. */
  get number(): number {
    return this.#isPending ? this.#yielded : 0;
  }

  /** A question that gave the vote with this number back was answered. */
  answered(number: number): void {
    this.#isPending &&= number !== this.#yielded;
  }

  hasYielded(vote: Vote): boolean {
    return vote.first <= this.#yielded;
  }

  /** Something was given back at some time. */
  get hasBegun(): boolean {
    return this.#yielded > 0;
  }
}
