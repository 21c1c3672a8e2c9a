import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import type { Outcome } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import type { Validity } from "../../../validity.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { validityOf, type Block } from "./majority.ts";
import { Ballot } from "./vote-request.ts";
import type { Bidder } from "./vote-request-host.ts";
import type { Electorate } from "./node-set.ts";
import { rivalsShare } from "./majority-verdict.ts";
import { Numbering, type Elected } from "./fencing-agreement.ts";
import type { QuorumHost } from "./request-host.ts";
import type { Vote } from "./vote.ts";
import { Wording } from "./vote-operations.ts";

/** What a bid needs of the request that it is made for. */
export interface BidRequest {
  readonly key: string;
  readonly keys: LockKeys;
  readonly ttlMs: number;
  /** When it stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  /** Elected, with one fencing number. */
  won(election: Election): void;
  /** The nodes could not be brought to one number. */
  undecided(): void;
  /** Something was heard, and it is not decided. */
  heard(): void;
}

interface BidOptions {
  readonly wanted: AcquireRequest;
  readonly token: string;
  /** The bound of the queues does not apply, because a grant is given up with this request. */
  readonly isPastBound: boolean;
}

/** A majority of the nodes is ours, and has one number for it. */
export interface Election extends Block {
  readonly validity: Validity;
  readonly isClaim: boolean;
  readonly rounds: number;
  /** Whose votes they are. */
  readonly ballots: readonly Elected[];
}

/**
 * One token's bid for a majority: a ballot for each node, all asked at once. Elected once a majority is valid and agrees on a
 * fencing number. Until then an earlier rival gets a vote back when it asks (quorum mutual exclusion, after Maekawa).
 */
export class Bid implements Bidder {
  readonly request: BidRequest;
  readonly token: string;
  readonly want: number;
  readonly wording: Wording;
  readonly ballots: readonly Ballot[];
  /** Whether places in the queues are wanted. */
  waits: boolean;
  isOpen = true;
  readonly #host: QuorumHost;
  readonly #numbering: Numbering = new Numbering(this);

  constructor(host: QuorumHost, request: BidRequest, options: BidOptions) {
    const { wanted, token, isPastBound } = options;
    this.#host = host;
    this.request = request;
    this.token = token;
    this.want = wanted.want;
    this.waits = wanted.deadline !== null;
    this.wording = new Wording(host, { wanted, deadline: request.deadline, token, isPastBound });
    this.ballots = host.electorate.voters.map((voter) => new Ballot(this, voter));
  }

  get clock(): Clock {
    return this.#host.clock;
  }
  get random(): Random {
    return this.#host.random;
  }
  get electorate(): Electorate {
    return this.#host.electorate;
  }
  get driftFactor(): number {
    return this.#host.driftFactor;
  }
  get nodeTimeoutMs(): number {
    return this.#host.nodeTimeoutMs;
  }
  get keys(): LockKeys {
    return this.request.keys;
  }
  get ttlMs(): number {
    return this.request.ttlMs;
  }
  get round(): number {
    return this.#numbering.round;
  }

  get isElected(): boolean {
    return this.#mayBeElected() && this.#elected().length >= this.electorate.majority;
  }

  /** Most nodes have answered. @param isTrusted those that are still to answer are taken to do so */
  isAnswered(isTrusted: boolean): boolean {
    const answered = this.ballots.filter(
      ({ hasAnswered, isPending }) => hasAnswered || (isTrusted && isPending),
    );
    return answered.length >= this.electorate.majority;
  }

  /** It may be that only a lost message keeps it from its majority: it had better ask again soon. */
  get isSplit(): boolean {
    return this.ballots.some(({ vote }) => vote !== undefined) || this.#waitsForYielding;
  }

  /** A rival that came later has been asked for its vote, which comes to us by message; one with a majority gives none back. */
  get #waitsForYielding(): boolean {
    const { ballots, token } = this;
    const isAsked = ballots.some(
      ({ answer, position, holder }) => answer === "held" && position === 0 && precedes(token, holder),
    );
    return isAsked && rivalsShare(ballots) < this.electorate.majority;
  }

  /** It has votes of nodes whose messages do not reach us: nobody can ask those back. */
  get hasDeafVotes(): boolean {
    return this.ballots.some(({ vote, mayQueue }) => vote !== undefined && !mayQueue);
  }

  /** What it may have left on the nodes. */
  get outcome(): Outcome {
    return this.ballots.some(({ attempts }) => attempts.outcome === "unknown") ? "unknown" : "none";
  }

  /** When some node is to be asked again. */
  get dueAt(): number {
    let earliest = Infinity;
    for (const { dueAt } of this.ballots) {
      earliest = Math.min(earliest, dueAt);
    }
    return earliest;
  }

  /** So far all who answered have voted for it, and others are still to answer. */
  get isUncontested(): boolean {
    let pending = 0;
    for (const { answer, isPending, position } of this.ballots) {
      if ((answer !== "granted" && !isPending) || position !== undefined) {
        return false;
      }
      pending += isPending ? 1 : 0;
    }
    return pending > 0;
  }

  askAll(): void {
    const candidate = this.electorate.candidate();
    for (const ballot of this.ballots) {
      ballot.ask(candidate);
    }
  }

  askDue(): void {
    const now = this.clock.now();
    const candidate = this.electorate.candidate();
    for (const ballot of this.ballots) {
      if (ballot.dueAt <= now && this.isOpen) {
        ballot.wake(candidate);
      }
    }
  }

  /** Answers do not matter any more. */
  close(): void {
    this.isOpen = false;
  }

  /** What kept some votes from counting may be over. */
  reconsider(): void {
    for (const ballot of this.ballots) {
      this.heard(ballot);
    }
  }

  giveBack(ballot: Ballot): void {
    this.#host.holdings.givenBack(this, ballot);
  }

  heardTooLate(ballot: Ballot, vote: Vote | undefined): void {
    this.#host.holdings.leftBehind(this, ballot, vote);
  }

  heard(ballot: Ballot): void {
    if (!this.isOpen) {
      return;
    }
    const elected = this.#mayBeElected() ? this.#elected() : [];
    if (elected.length < this.electorate.majority) {
      for (const each of this.ballots) {
        each.yieldIfAsked();
      }
      this.request.heard();
    } else {
      this.#settle(elected, ballot);
    }
  }

  #settle(elected: readonly Elected[], heard: Ballot): void {
    const block = this.#numbering.settle(elected, heard);
    if (block === "undecided") {
      this.request.undecided();
    } else if (block !== "open") {
      this.#win(elected, block);
    }
  }

  #win(elected: readonly Elected[], { first, last }: Block): void {
    this.isOpen = false;
    const votes = elected.map(({ vote }) => vote);
    const validity = validityOf(
      votes.map((vote) => vote.validity),
      this.electorate.majority,
    );
    const isClaim = votes.some((vote) => vote.isClaim);
    this.request.won({
      first,
      last,
      validity,
      isClaim,
      rounds: this.round,
      ballots: elected,
    });
  }

  /** Whether there are votes enough, whatever they are worth. */
  #mayBeElected(): boolean {
    let votes = 0;
    for (const { vote } of this.ballots) {
      votes += vote === undefined ? 0 : 1;
    }
    return votes >= this.electorate.majority;
  }

  /** The valid votes. */
  #elected(): Elected[] {
    return this.ballots.filter((ballot): ballot is Elected => ballot.isOurs);
  }
}

/** As the nodes' queues have it. */
function precedes(token: string, other: string): boolean {
  const [place, others] = [placeOf(token), placeOf(other)];
  return place === others ? token.slice(0, 32) < other.slice(0, 32) : place < others;
}

function placeOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(":") + 1));
}
