import { agreedOn, type Block } from "./majority.ts";
import type { Ballot } from "./vote-request.ts";
import type { Bid } from "./majority-attempt.ts";
import type { Vote } from "./vote.ts";

/** After so many rounds without one number it is given up. */
const mostRounds = 3;

/** A ballot whose vote is ours. */
export type Elected = Ballot & { readonly vote: Vote };

/**
 * How a majority comes to one fencing number for its votes: where the nodes gave different ones they are asked to raise them, in
 * rounds.
 */
export class Numbering {
  /** How many rounds it has taken so far. */
  round = 1;
  readonly #bid: Bid;
  /** The number that the nodes are asked to agree on in this round. */
  #proposed = 0;
  /** Who was asked in this round: who failed, or has a greater number, is not asked again before the next. */
  #asked: Set<Ballot> | undefined;

  constructor(bid: Bid) {
    this.#bid = bid;
  }

  /**
   * @param elected a majority
   * @param heard who was heard last
   * @returns what they agree on; open: more is to be heard; undecided: they could not be brought to one number
   */
  settle(elected: readonly Elected[], heard: Ballot): Block | "open" | "undecided" {
    const votes = elected.map(({ vote }) => vote);
    const block = agreedOn(votes, this.#bid.electorate.majority);
    // What was proposed is on its way: a smaller number is not that of these nodes any more.
    if (block && block.first >= this.#proposed) {
      return block;
    }
    if (elected.some(({ isAgreeing }) => isAgreeing)) {
      if (heard.vote !== undefined && heard.vote.first !== this.#proposed) {
        this.#ask(heard); // a vote that came late into this round
      }
    } else if (this.round < mostRounds) {
      this.round += 1;
      this.#proposed = Math.max(...votes.map(({ first }) => first));
      this.#asked = new Set();
      for (const ballot of elected) {
        this.#ask(ballot);
      }
    } else {
      return "undecided";
    }
    return "open";
  }

  #ask(ballot: Ballot): void {
    if (this.#asked?.has(ballot) !== false) {
      return;
    }
    this.#asked.add(ballot);
    const { keys, wording } = this.#bid;
    ballot.isAgreeing = true;
    ballot.attempts.sent();
    ballot.left();
    ballot.voter.node.perform({
      keys,
      args: wording.agreement(this.#proposed),
      answered: (reply) => {
        ballot.attempts.answered(reply.isSteady);
        ballot.isAgreeing = false;
        this.#answered(ballot, reply.value as unknown[]);
      },
      failed: (error) => ballot.failed(error),
    });
  }

  #answered(ballot: Ballot, [status, first, last]: readonly unknown[]): void {
    const { isOpen, round } = this.#bid;
    const { vote } = ballot;
    if (vote === undefined) {
      return;
    }
    const raised = { ...vote, first: Number(first), last: Number(last), round };
    const hasAgreed = Number(status) === 1;
    if (!isOpen) {
      // The election was decided before: the node's grant has this number from now on.
      if (hasAgreed) {
        this.#bid.heardTooLate(ballot, raised);
      }
      return;
    }
    if (hasAgreed) {
      ballot.count(raised);
    } else {
      ballot.broken();
    }
    this.#bid.heard(ballot);
  }
}
