import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Outcome } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Validity } from "../../../validity.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { competingVotes, type FencingRange, validityOf } from "./majority.ts";
import { VoteRequest, type VoteRequestHost } from "./vote-request.ts";
import type { QuorumNode } from "./quorum-node.ts";
import { type AttemptResidue, type Vote, VoteOperations } from "./vote.ts";
import type { NodeSet } from "./node-set.ts";
import { FencingAgreement, type ElectedVote } from "./fencing-agreement.ts";
import type { HeldGrant } from "./held-grant.ts";

/** The request of a majority attempt. */
export interface MajorityAttemptListener {
  readonly key: string;
  readonly keys: LockKeys;
  readonly ttlMs: number;
  /** When the request stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  /** A majority has voted, with one fencing number. */
  won(grant: MajorityGrant): void;
  /** The nodes could not agree on one fencing number. */
  unresolved(): void;
  /** A reply or notification arrived, and the attempt is still undecided. */
  onProgress(): void;
}

/** The driver of a majority attempt. */
export interface MajorityAttemptHost {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly random: Random;
  readonly claimMs: number;
  readonly driftFactor: number;
  readonly nodeTimeoutMs: number;
  readonly grants: {
    /** The node has residue of an attempt for which the node cannot vote. */
    cleanUpVote(attempt: MajorityAttempt, voteRequest: VoteRequest): void;
    /** The node has residue of an attempt that has ended. */
    handleLateReply(attempt: MajorityAttempt, voteRequest: VoteRequest, vote: Vote | undefined): void;
  };
}

interface MajorityAttemptOptions {
  readonly acquireRequest: AcquireRequest;
  readonly token: string;
  /** The limit of the queues does not apply, because the caller releases a grant in the same call. */
  readonly ignoresQueueLimit: boolean;
}

/** The result of an elected attempt: the votes of a majority, with one fencing number. */
export interface MajorityGrant extends FencingRange {
  readonly validity: Validity;
  readonly isClaim: boolean;
  readonly rounds: number;
  readonly votes: readonly { readonly node: QuorumNode; readonly vote: Vote }[];
  readonly residue: AttemptResidue;
}

/**
 * One attempt to collect the votes of a majority, with one token and one vote request for each node. The attempt is elected once a
 * majority of votes is valid, and succeeds once these votes agree on a fencing number. Until then an attempt yields a vote to an earlier
 * one on request (quorum mutual exclusion, after Maekawa).
 */
export class MajorityAttempt implements VoteRequestHost<VoteRequest> {
  readonly listener: MajorityAttemptListener;
  readonly token: string;
  readonly operations: VoteOperations;
  readonly voteRequests: readonly VoteRequest[];
  /** Whether the nodes queue the attempt. */
  waits: boolean;
  isOpen = true;
  /** The grant of the attempt, if it was elected. */
  held: HeldGrant | undefined;
  readonly #host: MajorityAttemptHost;
  readonly #fencingAgreement: FencingAgreement = new FencingAgreement(this);

  constructor(host: MajorityAttemptHost, request: MajorityAttemptListener, options: MajorityAttemptOptions) {
    const { acquireRequest, token, ignoresQueueLimit } = options;
    this.#host = host;
    this.listener = request;
    this.token = token;
    this.waits = acquireRequest.deadline !== null;
    this.operations = new VoteOperations({
      clock: host.clock,
      claimMs: host.claimMs,
      nodeSet: host.nodeSet,
      request: acquireRequest,
      deadline: request.deadline,
      token,
      ignoresQueueLimit,
    });
    this.voteRequests = host.nodeSet.nodes.map((node) => new VoteRequest(this, node));
  }

  get clock(): Clock {
    return this.#host.clock;
  }
  get random(): Random {
    return this.#host.random;
  }
  get nodeSet(): NodeSet {
    return this.#host.nodeSet;
  }
  get driftFactor(): number {
    return this.#host.driftFactor;
  }
  get nodeTimeoutMs(): number {
    return this.#host.nodeTimeoutMs;
  }
  get keys(): LockKeys {
    return this.listener.keys;
  }
  get ttlMs(): number {
    return this.listener.ttlMs;
  }
  get round(): number {
    return this.#fencingAgreement.round;
  }

  get hasMajority(): boolean {
    return this.#hasEnoughVotes() && this.#electedVotes().length >= this.nodeSet.majority;
  }

  /**
   * A majority of the nodes has replied.
   * @param isTrusted count the nodes with an outstanding reply as well
   */
  isAnswered(isTrusted: boolean): boolean {
    const answered = this.voteRequests.filter(
      ({ hasReplied, isPending }) => hasReplied || (isTrusted && isPending),
    );
    return answered.length >= this.nodeSet.majority;
  }

  /** Perhaps only a lost notification prevents the majority: the attempt sends its requests again soon. */
  get isSplitVote(): boolean {
    return this.voteRequests.some(({ vote }) => vote !== undefined) || this.#waitsForYield;
  }

  /**
   * A node requested the vote of a later attempt back, and will grant the vote by notification. An attempt with a majority yields no
   * vote.
   */
  get #waitsForYield(): boolean {
    const { voteRequests, token } = this;
    const isRequested = voteRequests.some(
      ({ reply, position, holder }) => reply === "held" && position === 0 && precedes(token, holder),
    );
    return isRequested && competingVotes(voteRequests) < this.nodeSet.majority;
  }

  /** The attempt has votes of nodes whose notifications do not arrive here, so that no node can request these votes back. */
  get hasUnreachableVotes(): boolean {
    return this.voteRequests.some(({ vote, mayQueue }) => vote !== undefined && !mayQueue);
  }

  /** Whether the attempt may have had an effect on a node. */
  get outcome(): Outcome {
    return this.voteRequests.some(({ history }) => history.outcome === "unknown") ? "unknown" : "none";
  }

  /** When the next vote request is due. */
  get dueAt(): number {
    let earliest = Infinity;
    for (const { dueAt } of this.voteRequests) {
      earliest = Math.min(earliest, dueAt);
    }
    return earliest;
  }

  /** All nodes with a reply have voted for the attempt, and other replies are outstanding. */
  get isUncontested(): boolean {
    let pending = 0;
    for (const { reply, isPending, position } of this.voteRequests) {
      if ((reply !== "granted" && !isPending) || position !== undefined) {
        return false;
      }
      pending += isPending ? 1 : 0;
    }
    return pending > 0;
  }

  requestAll(): void {
    const proposedFence = this.nodeSet.nextProposal();
    for (const voteRequest of this.voteRequests) {
      voteRequest.send(proposedFence);
    }
  }

  requestDue(): void {
    const now = this.clock.now();
    const proposedFence = this.nodeSet.nextProposal();
    for (const voteRequest of this.voteRequests) {
      if (voteRequest.dueAt <= now && this.isOpen) {
        voteRequest.wake(proposedFence);
      }
    }
  }

  /** Later replies do not count. */
  close(): void {
    this.isOpen = false;
  }

  /** Votes that did not count may count now. */
  recount(): void {
    for (const voteRequest of this.voteRequests) {
      this.onReply(voteRequest);
    }
  }

  cleanUp(voteRequest: VoteRequest): void {
    this.#host.grants.cleanUpVote(this, voteRequest);
  }

  handleLateReply(voteRequest: VoteRequest, vote: Vote | undefined): void {
    this.#host.grants.handleLateReply(this, voteRequest, vote);
  }

  onReply(voteRequest: VoteRequest): void {
    if (!this.isOpen) {
      return;
    }
    const elected = this.#hasEnoughVotes() ? this.#electedVotes() : [];
    if (elected.length < this.nodeSet.majority) {
      for (const each of this.voteRequests) {
        each.yieldIfRequested();
      }
      this.listener.onProgress();
    } else {
      this.#agreeOnFence(elected, voteRequest);
    }
  }

  #agreeOnFence(elected: readonly ElectedVote[], latest: VoteRequest): void {
    const range = this.#fencingAgreement.agree(elected, latest);
    if (range === "unresolved") {
      this.listener.unresolved();
    } else if (range !== "open") {
      this.#win(elected, range);
    }
  }

  #win(elected: readonly ElectedVote[], { first, last }: FencingRange): void {
    this.isOpen = false;
    const { operations } = this;
    const votes = elected.map(({ vote }) => vote);
    const validity = validityOf(
      votes.map((vote) => vote.validity),
      this.nodeSet.majority,
    );
    const isClaim = votes.some((vote) => vote.isClaim);
    this.listener.won({
      first,
      last,
      validity,
      isClaim,
      rounds: this.round,
      votes: elected.map(({ node, vote }) => ({ node, vote })),
      residue: {
        nodes: this.voteRequests.map(({ residue }) => residue),
        queueEntryOn: (node) => operations.queueEntryOn(node),
      },
    });
  }

  /** Whether a majority has voted, valid or not. A cheap check before {@link #electedVotes}. */
  #hasEnoughVotes(): boolean {
    let votes = 0;
    for (const { vote } of this.voteRequests) {
      votes += vote === undefined ? 0 : 1;
    }
    return votes >= this.nodeSet.majority;
  }

  /** The votes that count now. */
  #electedVotes(): ElectedVote[] {
    return this.voteRequests.filter((voteRequest): voteRequest is ElectedVote => voteRequest.countsNow);
  }
}

/** The order of the nodes' queues: by ticket, then by token. */
function precedes(token: string, other: string): boolean {
  const [ticket, otherTicket] = [ticketOf(token), ticketOf(other)];
  return ticket === otherTicket ? token.slice(0, 32) < other.slice(0, 32) : ticket < otherTicket;
}

function ticketOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(":") + 1));
}
