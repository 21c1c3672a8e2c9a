import type { Clock } from "../../../clock.ts";
import type { Grant } from "../../../driver.ts";
import { engineEnd } from "../../../validity.ts";
import { Attempts } from "../attempts.ts";
import { GivingUp } from "../giving-up.ts";
import type { Ballot } from "./ballot.ts";
import type { Electorate } from "./electorate.ts";
import type { QuorumHold } from "./hold.ts";
import { QuorumRelease } from "./release.ts";
import type { Voter } from "./voter.ts";

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
  /** By node, whatever bids ask it. */
  readonly #parts: readonly Part[];
  /** Who need not be asked to pass it on any more. */
  readonly #done = new Set<Ballot>();

  constructor({ electorate, clock, commandTimeoutMs }: PassingOnHost, grant: Grant, hold: QuorumHold) {
    this.#electorate = electorate;
    this.#grant = grant;
    this.#hold = hold;
    this.#parts = electorate.voters.map(() => new Part());
    this.#givingUp = new GivingUp({
      clock,
      release: (patientUntil) => {
        const release = new QuorumRelease(electorate, hold, {
          patientUntil,
          wasGivenUp: (voter) => this.#partOf(voter).mayHaveGivenUp,
        });
        release.begin(engineEnd(grant.validity));
        return release.result;
      },
      budgetMs: commandTimeoutMs,
    });
    this.released = this.#givingUp.released;
  }

  get token(): string {
    return this.#hold.token;
  }

  /** Of all bids that ask this node: a later one may find that an earlier one, whose answer was lost, has passed it on there. */
  attemptsOn(voter: Voter): Attempts {
    return this.#partOf(voter).attempts;
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
    this.#note(this.#partOf(ballot.voter), hadIt);
    if (!isPlain) {
      this.releaseOn(ballot); // it was not ours there, or had a place in the queue at the most
    }
    this.#done.add(ballot);
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
      this.#takeBackFrom(voter);
    }
  }

  /**
   * A node told late that it has something of the grant. Where it is not known whether it passed it on, it is asked to release it: who
   * took it back without a word would make it seem lost there.
   */
  heardLate(voter: Voter, takeBack: () => void): void {
    if (this.#partOf(voter).hadIt === undefined && this.#hold.mayBeOn(voter)) {
      this.#takeBackFrom(voter);
    } else {
      takeBack();
    }
  }

  /** Nobody asks for the next grant any more. No effect where it is known whether a majority had this one. */
  abandoned(): void {
    this.#givingUp.alone();
  }

  #takeBackFrom(voter: Voter): void {
    const { key, keys, token } = this.#hold;
    const terms = this.#hold.termsOn(voter);
    const until = this.#hold.forgottenAt(voter, engineEnd(this.#grant.validity));
    const candidate = this.#electorate.candidate();
    const part = this.#partOf(voter);
    const { attempts } = part;
    attempts.sent();
    voter.releaser.takeBack({ key, keys, token, terms, until, candidate }, (wasReleased) => {
      this.#note(part, wasReleased || attempts.isRepeat);
      attempts.answered();
    });
  }

  /** What is known first of a node is told by all that follows. */
  #note(part: Part, hadIt: boolean): void {
    part.hadIt ??= hadIt;
    const { majority, voters } = this.#electorate;
    const had = this.#parts.filter((each) => each.hadIt === true).length;
    const hadNot = this.#parts.filter((each) => each.hadIt === false).length;
    if (had >= majority) {
      this.#givingUp.answered(true);
    } else if (hadNot > voters.length - majority) {
      this.#givingUp.answered(false);
    }
  }

  #partOf({ index }: Voter): Part {
    return this.#parts[index] as Part;
  }
}

/** What is known of one node. */
class Part {
  /** To make it give the grant up. */
  readonly attempts: Attempts = new Attempts();
  /** Whether it still had the grant then; undefined: not known. */
  hadIt: boolean | undefined;

  /** Who releases it behind that need not find it any more. */
  get mayHaveGivenUp(): boolean {
    return this.hadIt ?? this.attempts.isUncertain;
  }
}
