import { agreedOn, type Block } from "./agreement.ts";
import type { Ballot } from "./ballot.ts";
import type { Bid } from "./bid.ts";
import type { Vote } from "./vote.ts";
import type { Voter } from "./voter.ts";

/** After so many rounds without one number it is given up. */
const mostRounds = 3;

/** A ballot whose vote is ours. */
export type Elected = Ballot & { readonly vote: Vote };

/** Which number a node has for a grant. */
export interface Told {
  readonly voter: Voter;
  readonly first: number;
}

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
  #toldBefore: readonly Told[] | undefined;

  constructor(bid: Bid) {
    this.#bid = bid;
  }

  /**
   * @param elected a majority whose votes are for one token
   * @param heard who was heard last
   * @returns what they agree on; open: more is to be heard; undecided: they could not be brought to one number
   */
  settle(elected: readonly Elected[], heard: Ballot): Block | "open" | "undecided" {
    const votes = elected.map(({ vote }) => vote);
    const block = this.#ofRepeat(votes) ?? agreedOn(votes, this.#bid.electorate.majority);
    // What was proposed is on its way: a smaller number is not that of these nodes any more.
    if (block === "open" || (block && block.first >= this.#proposed)) {
      return block;
    }
    if (elected.some(({ isAgreeing }) => isAgreeing)) {
      if (heard.vote !== undefined && heard.vote.first !== this.#proposed) {
        this.#ask(heard); // a vote that came late into this round
      }
    } else if (this.round < mostRounds) {
      this.round += 1;
      this.#toldBefore ??= numbersOf(elected);
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

  /** What they told before they were asked to agree. */
  told(elected: readonly Elected[]): readonly Told[] {
    return this.#toldBefore ?? numbersOf(elected);
  }

  /**
   * The grant of an earlier attempt may have its number already, which its holder uses; nodes that were filled again or voted late
   * have others. So all are heard before any is raised. Where no majority has one number, it is settled as for any other bid: only
   * the largest is certainly larger than those of leases before.
   */
  #ofRepeat(votes: readonly Vote[]): Block | "open" | undefined {
    const { token, isRepeat, electorate, ballots } = this.#bid;
    if ((votes[0]?.token === token && !isRepeat) || this.round > 1) {
      return undefined;
    }
    const told = votes.map(({ first, last }) => ({ first, last, round: 0 }));
    const isPending = ballots.some((ballot) => ballot.isPending);
    return agreedOn(told, electorate.majority) ?? (isPending ? "open" : undefined);
  }

  #ask(ballot: Ballot): void {
    if (this.#asked?.has(ballot) !== false) {
      return;
    }
    this.#asked.add(ballot);
    const { keys, token, wording } = this.#bid;
    const ours = ballot.vote?.token ?? token; // an earlier attempt's, where we repeat it
    ballot.isAgreeing = true;
    ballot.left();
    ballot.voter.node.perform({
      keys,
      text: wording.agreement(ours, this.#proposed),
      answered: (reply) => {
        ballot.isAgreeing = false;
        this.#answered(ballot, reply.value as unknown[]);
      },
      failed: (error) => {
        ballot.failed(error);
      },
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

function numbersOf(elected: readonly Elected[]): Told[] {
  return elected.map(({ voter, vote: { first } }) => ({ voter, first }));
}
