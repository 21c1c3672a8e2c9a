import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Outcome } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Validity } from "../../../validity.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { validityOf, type FencingRange } from "./majority.ts";
import { VoteRequest } from "./vote-request.ts";
import type { QuorumNode } from "./quorum-node.ts";
import type { AttemptResidue } from "./vote-residue.ts";
import type { NodeSet } from "./node-set.ts";
import type { VoteRequestHost } from "./vote-request-host.ts";
import { competingVotes } from "./majority-verdict.ts";
import { FencingAgreement, type ElectedVote } from "./fencing-agreement.ts";
import type { Vote } from "./vote.ts";
import { VoteOperations } from "./vote-operations.ts";

/** What a bid needs of the request that it is made for. */
export interface MajorityAttemptListener {
  readonly key: string;
  readonly keys: LockKeys;
  readonly ttlMs: number;
  /** When it stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  /** Elected, with one fencing number. */
  elected(grant: MajorityGrant): void;
  /** The nodes could not be brought to one number. */
  unresolved(): void;
  /** Something was heard, and it is not decided. */
  onProgress(): void;
}

/** What a majority attempt needs of its driver. */
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
  /** The bound of the queues does not apply, because a grant is given up with this request. */
  readonly ignoresQueueLimit: boolean;
}

/** A majority of the nodes is ours, and has one number for it. */
export interface MajorityGrant extends FencingRange {
  readonly validity: Validity;
  readonly isClaim: boolean;
  readonly rounds: number;
  readonly votes: readonly { readonly node: QuorumNode; readonly vote: Vote }[];
  readonly residue: AttemptResidue;
}

/**
 * One token's bid for a majority: a ballot for each node, all asked at once. Elected once a majority is valid and agrees on a
 * fencing number. Until then an earlier rival gets a vote back when it asks (quorum mutual exclusion, after Maekawa).
 */
export class MajorityAttempt implements VoteRequestHost<VoteRequest> {
  readonly listener: MajorityAttemptListener;
  readonly token: string;
  readonly fencingCount: number;
  readonly operations: VoteOperations;
  readonly voteRequests: readonly VoteRequest[];
  /** Whether places in the queues are wanted. */
  waits: boolean;
  isOpen = true;
  readonly #host: MajorityAttemptHost;
  readonly #fencingAgreement: FencingAgreement = new FencingAgreement(this);

  constructor(host: MajorityAttemptHost, request: MajorityAttemptListener, options: MajorityAttemptOptions) {
    const { acquireRequest, token, ignoresQueueLimit } = options;
    this.#host = host;
    this.listener = request;
    this.token = token;
    this.fencingCount = acquireRequest.fencingCount;
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

  get isElected(): boolean {
    return this.#hasEnoughVotes() && this.#electedVotes().length >= this.nodeSet.majority;
  }

  /** Most nodes have answered. @param isTrusted those that are still to answer are taken to do so */
  isAnswered(isTrusted: boolean): boolean {
    const answered = this.voteRequests.filter(
      ({ hasReplied, isPending }) => hasReplied || (isTrusted && isPending),
    );
    return answered.length >= this.nodeSet.majority;
  }

  /** It may be that only a lost message keeps it from its majority: it had better ask again soon. */
  get isSplitVote(): boolean {
    return this.voteRequests.some(({ vote }) => vote !== undefined) || this.#waitsForYield;
  }

  /** A rival that came later has been asked for its vote, which comes to us by message; one with a majority gives none back. */
  get #waitsForYield(): boolean {
    const { voteRequests, token } = this;
    const isAsked = voteRequests.some(
      ({ reply, position, holder }) => reply === "held" && position === 0 && precedes(token, holder),
    );
    return isAsked && competingVotes(voteRequests) < this.nodeSet.majority;
  }

  /** It has votes of nodes whose messages do not reach us: nobody can ask those back. */
  get hasUnreachableVotes(): boolean {
    return this.voteRequests.some(({ vote, mayQueue }) => vote !== undefined && !mayQueue);
  }

  /** What it may have left on the nodes. */
  get outcome(): Outcome {
    return this.voteRequests.some(({ history }) => history.outcome === "unknown") ? "unknown" : "none";
  }

  /** When some node is to be asked again. */
  get dueAt(): number {
    let earliest = Infinity;
    for (const { dueAt } of this.voteRequests) {
      earliest = Math.min(earliest, dueAt);
    }
    return earliest;
  }

  /** So far all who answered have voted for it, and others are still to answer. */
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

  /** Answers do not matter any more. */
  close(): void {
    this.isOpen = false;
  }

  /** What kept some votes from counting may be over. */
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
    const block = this.#fencingAgreement.settle(elected, latest);
    if (block === "unresolved") {
      this.listener.unresolved();
    } else if (block !== "open") {
      this.#win(elected, block);
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
    this.listener.elected({
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

  /** Whether there are votes enough, whatever they are worth. */
  #hasEnoughVotes(): boolean {
    let votes = 0;
    for (const { vote } of this.voteRequests) {
      votes += vote === undefined ? 0 : 1;
    }
    return votes >= this.nodeSet.majority;
  }

  /** The valid votes. */
  #electedVotes(): ElectedVote[] {
    return this.voteRequests.filter((voteRequest): voteRequest is ElectedVote => voteRequest.countsNow);
  }
}

/** As the nodes' queues have it. */
function precedes(token: string, other: string): boolean {
  const [position, otherPosition] = [positionOf(token), positionOf(other)];
  return position === otherPosition ? token.slice(0, 32) < other.slice(0, 32) : position < otherPosition;
}

function positionOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(":") + 1));
}
