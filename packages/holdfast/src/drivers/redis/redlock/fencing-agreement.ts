import { agreedRange, type FencingRange } from "./majority.ts";
import type { VoteRequest } from "./vote-request.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { NodeSet } from "./node-set.ts";
import type { VoteOperations } from "./vote-operations.ts";
import type { Vote } from "./vote.ts";

/** After so many rounds without one number it is given up. */
const maxRounds = 3;

/** A vote request whose node has voted for the attempt. */
export type ElectedVote = VoteRequest & { readonly vote: Vote };

/** What the agreement needs of its majority attempt. */
interface FencingAgreementHost {
  readonly nodeSet: NodeSet;
  readonly keys: LockKeys;
  readonly operations: VoteOperations;
  readonly isOpen: boolean;
  onReply(voteRequest: VoteRequest): void;
  handleLateReply(voteRequest: VoteRequest, vote: Vote | undefined): void;
}

/**
 * How a majority comes to one fencing number for its votes: where the nodes gave different ones they are asked to raise them, in
 * rounds.
 */
export class FencingAgreement {
  /** How many rounds it has taken so far. */
  round = 1;
  readonly #attempt: FencingAgreementHost;
  /** The number that the nodes are asked to agree on in this round. */
  #proposed = 0;
  /** Who was asked in this round: who failed, or has a greater number, is not asked again before the next. */
  #requested: Set<VoteRequest> | undefined;

  constructor(attempt: FencingAgreementHost) {
    this.#attempt = attempt;
  }

  /**
   * @param elected a majority
   * @param latest who was heard last
   * @returns what they agree on; open: more is to be heard; undecided: they could not be brought to one number
   */
  settle(elected: readonly ElectedVote[], latest: VoteRequest): FencingRange | "open" | "unresolved" {
    const votes = elected.map(({ vote }) => vote);
    const range = agreedRange(votes, this.#attempt.nodeSet.majority);
    // What was proposed is on its way: a smaller number is not that of these nodes any more.
    if (range && range.first >= this.#proposed) {
      return range;
    }
    if (elected.some(({ isRaisingFence }) => isRaisingFence)) {
      if (latest.vote !== undefined && latest.vote.first !== this.#proposed) {
        this.#requestRaise(latest); // a vote that came late into this round
      }
    } else if (this.round < maxRounds) {
      this.round += 1;
      this.#proposed = Math.max(...votes.map(({ first }) => first));
      this.#requested = new Set();
      for (const voteRequest of elected) {
        this.#requestRaise(voteRequest);
      }
    } else {
      return "unresolved";
    }
    return "open";
  }

  #requestRaise(voteRequest: VoteRequest): void {
    if (this.#requested?.has(voteRequest) !== false) {
      return;
    }
    this.#requested.add(voteRequest);
    const { keys, operations } = this.#attempt;
    voteRequest.isRaisingFence = true;
    voteRequest.history.sent();
    voteRequest.residue.add();
    voteRequest.node.server.perform({
      keys,
      args: operations.raiseFence(this.#proposed),
      answered: (reply) => {
        voteRequest.history.answered(reply.sameConnection);
        voteRequest.isRaisingFence = false;
        this.#raised(voteRequest, reply.value as unknown[]);
      },
      failed: (error) => voteRequest.failed(error),
    });
  }

  #raised(voteRequest: VoteRequest, [status, first, last]: readonly unknown[]): void {
    const { isOpen } = this.#attempt;
    const { vote } = voteRequest;
    if (vote === undefined) {
      return;
    }
    const raised = { ...vote, first: Number(first), last: Number(last), round: this.round };
    const hasAgreed = Number(status) === 1;
    if (!isOpen) {
      // The election was decided before: the node's grant has this number from now on.
      if (hasAgreed) {
        this.#attempt.handleLateReply(voteRequest, raised);
      }
      return;
    }
    if (hasAgreed) {
      voteRequest.count(raised);
    } else {
      voteRequest.invalidated();
    }
    this.#attempt.onReply(voteRequest);
  }
}
