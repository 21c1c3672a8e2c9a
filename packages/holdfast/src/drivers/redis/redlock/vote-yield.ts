import type { Vote } from "./vote.ts";

/**
 * The votes of one node that an attempt yields to an earlier attempt. After a yield, a vote of the node counts only with a greater
 * number, whether the vote arrives by reply or by notification.
 */
export class VoteYield {
  /** The number of the last yielded vote. */
  #yielded = 0;
  /** No reply has confirmed the yield yet: until then every request to the node yields. */
  #isPending = false;
  /** The largest number that was requested back. An inquiry can arrive before its vote. */
  #requestedBack = 0;

  /** An earlier attempt requests the vote with this number back. @returns whether the vote has not been yielded yet */
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

  /** The next request yields the vote. */
  begin(): void {
    this.#yielded = this.#requestedBack;
    this.#isPending = true;
  }

  /** The number of the vote that the next request yields; 0: none. */
  get number(): number {
    return this.#isPending ? this.#yielded : 0;
  }

  /** The node replied to a request that yielded the vote with this number. */
  answered(number: number): void {
    this.#isPending &&= number !== this.#yielded;
  }

  hasYielded(vote: Vote): boolean {
    return vote.first <= this.#yielded;
  }

  /** The attempt has yielded a vote of the node before. */
  get hasBegun(): boolean {
    return this.#yielded > 0;
  }
}
