import type { Clock } from "../../../clock.ts";
import type { Grant } from "../../../driver.ts";
import { engineEnd } from "../../../validity.ts";
import { GivingUp } from "../giving-up.ts";
import type { Ballot } from "./ballot.ts";
import type { Electorate } from "./electorate.ts";
import type { QuorumHold } from "./hold.ts";
import { QuorumRelease } from "./release.ts";

interface PassingOnHost {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly commandTimeoutMs: number;
}

/**
 * An older grant that the nodes give up in the step in which they are asked for the next one. A node that does not do so is told to
 * release it by itself.
 */
export class PassingOn {
  /** Whether a majority still had it. Rejects as a release does. */
  readonly released: Promise<boolean>;
  readonly #electorate: Electorate;
  readonly #grant: Grant;
  readonly #hold: QuorumHold;
  readonly #givingUp: GivingUp;
  /** By node: whether it still had the grant. */
  readonly #had = new Map<number, boolean>();
  /** Who need not be asked to pass it on any more. */
  readonly #done = new Set<Ballot>();

  constructor({ electorate, clock, commandTimeoutMs }: PassingOnHost, grant: Grant, hold: QuorumHold) {
    this.#electorate = electorate;
    this.#grant = grant;
    this.#hold = hold;
    this.#givingUp = new GivingUp({
      clock,
      release: () => {
        const release = new QuorumRelease(electorate, hold);
        release.begin(engineEnd(grant.validity));
        return release.result;
      },
      patienceMs: commandTimeoutMs,
    });
    this.released = this.#givingUp.released;
  }

  get token(): string {
    return this.#hold.token;
  }

  /** Whether the node is to be asked for the next grant only. */
  isDoneOn(ballot: Ballot): boolean {
    return this.#done.has(ballot);
  }

  /**
   * A node was asked to pass it on.
   * @param hadIt it was still ours there
   * @param isPlain the node itself says so
   */
  answered(ballot: Ballot, hadIt: boolean, isPlain: boolean): void {
    if (!isPlain) {
      this.releaseOn(ballot); // it was not ours there, or had a place in the queue at the most
    }
    this.#done.add(ballot);
    const { index } = ballot.voter;
    this.#had.set(index, hadIt || this.#had.get(index) === true);
    const { majority, voters } = this.#electorate;
    const answers = [...this.#had.values()];
    const wasOurs = answers.filter((answer) => answer).length;
    if (wasOurs >= majority) {
      this.#givingUp.answered(true);
    } else if (answers.length - wasOurs > voters.length - majority) {
      this.#givingUp.answered(false);
    }
  }

  /** A node is not asked at all. */
  passedOver(ballot: Ballot): void {
    this.releaseOn(ballot);
    this.#done.add(ballot);
  }

  /** The bid is over: a node that did not answer may still have what was given up. */
  releaseUnanswered(ballots: readonly Ballot[]): void {
    for (const ballot of ballots) {
      if (ballot.isUnanswered) {
        this.releaseOn(ballot);
      }
    }
  }

  releaseOn(ballot: Ballot): void {
    const { voter } = ballot;
    if (!this.#done.has(ballot) && this.#hold.mayBeOn(voter)) {
      const { key, keys, token } = this.#hold;
      const terms = this.#hold.termsOn(voter);
      const until = this.#hold.forgottenAt(voter, engineEnd(this.#grant.validity));
      const candidate = this.#electorate.candidate();
      voter.releaser.takeBack({ key, keys, token, terms, until, candidate });
    }
  }

  /** Nobody asks for the next grant any more. No effect where it is known whether a majority had this one. */
  abandoned(): void {
    this.#givingUp.alone();
  }
}
