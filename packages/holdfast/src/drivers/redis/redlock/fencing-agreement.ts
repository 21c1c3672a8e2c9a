import { agreedRange, type FencingRange } from "./majority.ts";
import type { VoteRequest } from "./vote-request.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { NodeSet } from "./node-set.ts";
import type { Vote, VoteOperations } from "./vote.ts";

/** After this many rounds without one number, the attempt is replaced. */
const maxRounds = 3;

/** A vote request whose node has voted for the attempt. */
export type ElectedVote = VoteRequest & { readonly vote: Vote };

/** The majority attempt whose votes need one number. */
interface FencingAgreementHost {
  readonly nodeSet: NodeSet;
  readonly keys: LockKeys;
  readonly operations: VoteOperations;
  readonly isOpen: boolean;
  onReply(voteRequest: VoteRequest): void;
  handleLateReply(voteRequest: VoteRequest, vote: Vote | undefined): void;
}

/**
 * Brings a majority to one fencing number. If the nodes gave different numbers, the agreement requests all of them to raise their
 * numbers to the largest one, in rounds.
 */
export class FencingAgreement {
  /** The current round. */
  round = 1;
  readonly #attempt: FencingAgreementHost;
  /** The number to which the nodes are requested to raise theirs in this round. */
  #proposed = 0;
  /** The vote requests of this round. A node that failed, or has a greater number, gets no second request in the same round. */
  #requested: Set<VoteRequest> | undefined;

  constructor(attempt: FencingAgreementHost) {
    this.#attempt = attempt;
  }

  /**
   * @param elected a majority
   * @param latest the vote request with the latest reply
   * @returns the agreed range, "open" if replies are outstanding, or "unresolved" if the nodes could not agree
   */
  agree(elected: readonly ElectedVote[], latest: VoteRequest): FencingRange | "open" | "unresolved" {
    const votes = elected.map(({ vote }) => vote);
    const range = agreedRange(votes, this.#attempt.nodeSet.majority);
    // A request to raise the numbers is under way, so that the nodes may no longer have a smaller number.
    if (range && range.first >= this.#proposed) {
      return range;
    }
    if (elected.some(({ isRaisingFence }) => isRaisingFence)) {
      if (latest.vote !== undefined && latest.vote.first !== this.#proposed) {
        this.#requestRaise(latest); // the vote arrived after the start of this round
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
      // The attempt was elected without this node: the node's grant has the raised number from now on.
      if (hasAgreed) {
        this.#attempt.handleLateReply(voteRequest, raised);
      }
      return;
    }
    if (hasAgreed) {
      voteRequest.record(raised);
    } else {
      voteRequest.invalidated();
    }
    this.#attempt.onReply(voteRequest);
  }
}
