import { QuorumError } from "../../../errors.ts";
import { messageOf, outcomeOf } from "../failures.ts";
import type { Leftover } from "../releaser.ts";
import type { Electorate } from "./electorate.ts";
import type { QuorumHold } from "./hold.ts";
import type { Voter } from "./voter.ts";

/**
 * Releases on all nodes that may have something of a grant, and goes on behind the decision until each has answered or forgotten.
 * @param until when the nodes will have forgotten it by themselves, on the scale of `clock.now()`
 * @returns whether a majority still had it; rejects with a `QuorumError` after the budget where too few answer
 */
export function releaseByMajority(electorate: Electorate, hold: QuorumHold, until: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    new QuorumRelease(electorate, hold, resolve, reject).begin(until);
  });
}

class QuorumRelease {
  readonly #electorate: Electorate;
  readonly #hold: QuorumHold;
  readonly #resolve: (released: boolean) => void;
  readonly #reject: (error: unknown) => void;
  #pending = 0;
  #had = 0;
  #hadNot = 0;
  readonly #failures = new Map<Voter, unknown>();

  constructor(
    electorate: Electorate,
    hold: QuorumHold,
    resolve: (released: boolean) => void,
    reject: (error: unknown) => void,
  ) {
    this.#electorate = electorate;
    this.#hold = hold;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(until: number): void {
    const { voters } = this.#electorate;
    const { key, keys, token } = this.#hold;
    const candidate = this.#electorate.candidate();
    const having = voters.filter((voter) => this.#hold.mayBeOn(voter));
    this.#pending = having.length;
    this.#hadNot = voters.length - having.length;
    this.#decide();
    for (const voter of having) {
      const leftover: Leftover = { key, keys, token, terms: this.#hold.termsOn(voter), until, candidate };
      voter.releaser.begin(
        leftover,
        (released) => {
          this.#failures.delete(voter);
          this.#pending -= 1;
          this.#had += released ? 1 : 0;
          this.#hadNot += released ? 0 : 1;
          this.#decide();
        },
        (error) => {
          if (!this.#failures.has(voter)) {
            this.#failures.set(voter, error);
            this.#pending -= 1;
            this.#decide();
          }
        },
      );
    }
  }

  #decide(): void {
    const { majority, voters } = this.#electorate;
    if (this.#had >= majority) {
      this.#resolve(true);
    } else if (this.#hadNot > voters.length - majority) {
      this.#resolve(false);
    } else if (this.#pending === 0) {
      this.#reject(this.#error());
    }
  }

  #error(): QuorumError {
    const votes = this.#electorate.voters.map((voter) => {
      const error = this.#failures.get(voter);
      const vote = error === undefined ? "granted" : outcomeOf(error) === "unknown" ? "timeout" : "error";
      return {
        node: voter.name,
        vote,
        latencyMs: null,
        reason: error === undefined ? null : messageOf(error),
      } as const;
    });
    return new QuorumError({ key: this.#hold.key, votes, outcome: "unknown", retryable: true });
  }
}
