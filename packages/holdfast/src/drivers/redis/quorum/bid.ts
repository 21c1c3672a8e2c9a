import type { Clock } from "../../../clock.ts";
import type { NodeVote, Outcome } from "../../../errors.ts";
import type { Random } from "../../../random.ts";
import type { Validity } from "../../../validity.ts";
import { Ballot, expiryMs, type Bidder, type Vote } from "./ballot.ts";
import type { Electorate } from "./electorate.ts";
import type { Voter } from "./voter.ts";
import type { LockKeys } from "../keys.ts";
import { textOf } from "../operation.ts";
import { agreedOn, validityOf, type Block } from "./agreement.ts";
import type { PassingOn } from "./passing-on.ts";

/** After so many rounds without one number it is given up and tried with a fresh token. */
const mostRounds = 3;

/** What a bid is for. */
export interface BidOptions {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly random: Random;
  readonly driftFactor: number;
  readonly nodeTimeoutMs: number;
  readonly keys: LockKeys;
  readonly token: string;
  readonly ttlMs: number;
  readonly want: number;
  /** An owner's own words, as a script takes them. */
  readonly words: string;
  /** What a queue member says between its token and the kind of its channel. */
  readonly member: string;
  /** An older grant that is given up in the same step. */
  readonly passing: PassingOn | undefined;
  /** The token is an earlier attempt's of the same name: messages about it go to whoever made it. */
  readonly isRepeat: boolean;
  readonly listener: BidListener;
}

export interface BidListener {
  /** Elected, with one fencing number. */
  won(election: Election): void;
  /** The nodes could not be brought to one number. */
  undecided(): void;
  /** Something was heard, and it is not decided. */
  heard(): void;
  /** Whether a grant with this token was given back. */
  isReleased(token: string): boolean;
  /** A node still has a grant that was given back. */
  takeBackReleased(ballot: Ballot, token: string): void;
  /** A node does not vote: what it has of the bid is given back. */
  giveBack(bid: Bid, ballot: Ballot): void;
  /** A node has something of a bid that is over: a vote, or (undefined) a place in its queue. */
  heardTooLate(bid: Bid, ballot: Ballot, vote: Vote | undefined): void;
}

/** A majority of the nodes is ours, and has one number for it. */
export interface Election extends Block {
  readonly token: string;
  readonly validity: Validity;
  readonly isClaim: boolean;
  readonly rounds: number;
  /** Whose votes they are. */
  readonly ballots: readonly Elected[];
  /** What they told before they were asked to agree on one number. */
  told(): readonly Told[];
}

/** Which number a node has for a grant. */
export interface Told {
  readonly voter: Voter;
  readonly first: number;
}

/**
 * One token's bid for a majority: a ballot for each node, all asked at once. Elected once a majority is valid and agrees on a
 * fencing number. Until then an earlier rival gets a vote back when it asks (quorum mutual exclusion, after Maekawa).
 */
export class Bid implements Bidder {
  readonly ballots: readonly Ballot[];
  /** How many rounds the fencing number has taken so far. */
  round = 1;
  /** Whether places in the queues are wanted. */
  waits: boolean;
  isOpen = true;
  readonly #options: BidOptions;
  /** The number that the nodes are asked to agree on in this round. */
  #proposed = 0;
  /** Who was asked in this round: who failed, or has a greater number, is not asked again before the next. */
  #askedToAgree: Set<Ballot> | undefined;
  #toldBefore: readonly Told[] | undefined;
  /** Most nodes are asked in the same words. */
  #asked: readonly string[] = [];
  #text = "";
  #member = "";

  constructor(options: BidOptions, waits: boolean) {
    this.#options = options;
    this.waits = waits;
    this.ballots = options.electorate.voters.map((voter) => new Ballot(this, voter));
  }

  get clock(): Clock {
    return this.#options.clock;
  }
  get random(): Random {
    return this.#options.random;
  }
  get electorate(): Electorate {
    return this.#options.electorate;
  }
  get keys(): LockKeys {
    return this.#options.keys;
  }
  get token(): string {
    return this.#options.token;
  }
  get ttlMs(): number {
    return this.#options.ttlMs;
  }
  get driftFactor(): number {
    return this.#options.driftFactor;
  }

  get nodeTimeoutMs(): number {
    return this.#options.nodeTimeoutMs;
  }

  get passing(): PassingOn | undefined {
    return this.#options.passing;
  }

  /** Whether it was the first to ask with this token. */
  isFirstOf(token: string): boolean {
    return token === this.token && !this.#options.isRepeat;
  }

  get isHeard(): boolean {
    return !this.#options.isRepeat;
  }

  get isElected(): boolean {
    return this.#mayBeElected() && this.#elected().length >= this.electorate.majority;
  }

  /** Some nodes, perhaps not enough, are ours. */
  get hasVotes(): boolean {
    return this.ballots.some(({ vote }) => vote !== undefined);
  }

  /** It has votes of nodes whose messages do not reach us: nobody can ask those back. */
  get hasDeafVotes(): boolean {
    return this.ballots.some(({ vote, mayQueue }) => vote !== undefined && !mayQueue);
  }

  /** What it may have left on the nodes. */
  get outcome(): Outcome {
    return this.ballots.some(({ outcome }) => outcome === "unknown") ? "unknown" : "none";
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
      if (!this.#isLeftToExpire(ballot)) {
        ballot.ask(candidate);
      }
    }
  }

  askDue(): void {
    const now = this.clock.now();
    const candidate = this.electorate.candidate();
    for (const ballot of this.ballots) {
      if (ballot.dueAt <= now) {
        ballot.ask(candidate);
      }
    }
  }

  /**
   * The token of an earlier attempt of the same name, which has votes while we split the others with it: both go on with the
   * earlier of the two, or neither would have a majority.
   */
  earlierAttempt(): string | undefined {
    if (this.ballots.some(({ isPending }) => isPending)) {
      return undefined;
    }
    const others = this.ballots.flatMap(({ vote }) => (vote ? [vote.token] : []));
    return others.find((token) => placeOf(token) < placeOf(this.token));
  }

  /**
   * A node has voted for a later attempt of the same name. Whoever made that goes on with ours; if nobody does any more it ends by
   * itself, unless we prolong it by asking.
   */
  #isLeftToExpire({ vote, leftUntil }: Ballot): boolean {
    if (this.clock.now() < leftUntil) {
      return true;
    }
    const isLater = vote !== undefined && placeOf(vote.token) > placeOf(this.token);
    return isLater && this.clock.now() < vote.heardAt + this.ttlMs * (1 + this.driftFactor) + expiryMs;
  }

  /** Votes with this token are none any more. */
  forget(token: string): void {
    for (const ballot of this.ballots) {
      if (ballot.vote?.token === token) {
        ballot.broken();
      }
    }
  }

  isReleased(token: string): boolean {
    return this.#options.listener.isReleased(token);
  }

  takeBackReleased(ballot: Ballot, token: string): void {
    this.#options.listener.takeBackReleased(ballot, token);
  }

  /** Answers do not matter any more. */
  close(): void {
    this.isOpen = false;
  }

  describe(): NodeVote[] {
    return this.ballots.map((ballot) => ballot.describe());
  }

  /** What its queue member says on this node after the token. */
  memberOn(ballot: Ballot): string {
    const kind = ballot.voter.node.channelKind;
    if (!this.#member.endsWith(kind)) {
      this.#member = `${this.#options.member} ${kind}`;
    }
    return this.#member;
  }

  textFor(ballot: Ballot, candidate: string): string {
    const { token, passing, ttlMs, want, words } = this.#options;
    const member = this.memberOn(ballot);
    if (passing?.isDoneOn(ballot) === false) {
      return textOf(["passOn", passing.token, token, member, String(ttlMs), String(want), words], candidate);
    }
    const wait = this.waits && ballot.mayQueue ? "2" : "0";
    const [askedCandidate, askedMember, askedWait] = this.#asked;
    if (askedCandidate !== candidate || askedMember !== member || askedWait !== wait) {
      this.#asked = [candidate, member, wait];
      const args = ["acquire", token, member, String(ttlMs), String(want), wait, words];
      this.#text = textOf(args, candidate);
    }
    return this.#text;
  }

  yieldText(ballot: Ballot, number: number, candidate: string): string {
    const { token, ttlMs, want, words } = this.#options;
    const args = ["yield", token, this.memberOn(ballot), String(number), String(ttlMs), String(want), words];
    return textOf(args, candidate);
  }

  grantFrom(first: number): readonly unknown[] {
    const { token, want } = this.#options;
    return [1, first, first + want - 1, token];
  }

  giveBack(ballot: Ballot): void {
    this.#options.listener.giveBack(this, ballot);
  }

  /** What kept some votes from counting may be over. */
  reconsider(): void {
    for (const ballot of this.ballots) {
      this.heard(ballot);
    }
  }

  heardTooLate(ballot: Ballot, vote: Vote | undefined): void {
    this.#options.listener.heardTooLate(this, ballot, vote);
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
      this.#options.listener.heard();
    } else {
      this.#settle(elected, ballot);
    }
  }

  /** A majority is ours: on one number, else another round makes it one. */
  #settle(elected: readonly Elected[], heard: Ballot): void {
    const { electorate, listener } = this.#options;
    const { majority } = electorate;
    const votes = elected.map(({ vote }) => vote);
    if (this.#settlesRepeat(elected, votes)) {
      return;
    }
    const block = agreedOn(votes, majority);
    // What was proposed is on its way: a smaller number is not that of these nodes any more.
    if (block && block.first >= this.#proposed) {
      this.#win(elected, votes, block);
      return;
    }
    if (elected.some(({ isAgreeing }) => isAgreeing)) {
      if (heard.vote !== undefined && heard.vote.first !== this.#proposed) {
        this.#askToAgree(heard); // a vote that came late into this round
      }
    } else if (this.round < mostRounds) {
      this.round += 1;
      this.#toldBefore ??= numbersOf(elected);
      this.#proposed = Math.max(...votes.map(({ first }) => first));
      this.#askedToAgree = new Set();
      for (const ballot of elected) {
        this.#askToAgree(ballot);
      }
    } else {
      listener.undecided();
    }
  }

  /**
   * The grant of an earlier attempt may have its number already, which its holder uses; nodes that were filled again or voted late
   * have others. So all are heard before any is raised. Where no majority has one number, it is settled as for any other bid: only
   * the largest is certainly larger than those of leases before.
   * @returns whether it is settled, or more is to be heard
   */
  #settlesRepeat(elected: readonly Elected[], votes: readonly Vote[]): boolean {
    const isRepeat = votes[0]?.token !== this.token || this.#options.isRepeat;
    if (!isRepeat || this.round > 1) {
      return false;
    }
    const told = votes.map(({ first, last }) => ({ first, last, round: 0 }));
    const block = agreedOn(told, this.electorate.majority);
    if (block) {
      this.#win(elected, votes, block);
      return true;
    }
    return this.ballots.some(({ isPending }) => isPending);
  }

  #win(elected: readonly Elected[], votes: readonly Vote[], { first, last }: Block): void {
    this.isOpen = false;
    const { token } = votes[0] as Vote;
    const validity = validityOf(
      votes.map((vote) => vote.validity),
      this.electorate.majority,
    );
    const isClaim = votes.some((vote) => vote.isClaim);
    this.#options.listener.won({
      first,
      last,
      token,
      validity,
      isClaim,
      rounds: this.round,
      ballots: elected,
      told: () => this.#toldBefore ?? numbersOf(elected),
    });
  }

  #askToAgree(ballot: Ballot): void {
    if (this.#askedToAgree?.has(ballot) === false) {
      this.#askedToAgree.add(ballot);
      ballot.agree(this.#proposed, this.#options.want);
    }
  }

  /** Whether there are votes enough, whatever they are worth. */
  #mayBeElected(): boolean {
    let votes = 0;
    for (const { vote } of this.ballots) {
      votes += vote === undefined ? 0 : 1;
    }
    return votes >= this.electorate.majority;
  }

  /** The valid votes for one token: repeats of one attempt may have different ones. */
  #elected(): Elected[] {
    const valid = this.ballots.filter((ballot): ballot is Elected => ballot.isOurs);
    const [first] = valid;
    if (valid.every(({ vote }) => vote.token === first?.vote.token)) {
      return valid;
    }
    const groups = valid.map((one) => valid.filter(({ vote }) => vote.token === one.vote.token));
    return groups.reduce((one, other) => (other.length > one.length ? other : one));
  }
}

/** A ballot whose vote is ours. */
type Elected = Ballot & { readonly vote: Vote };

function numbersOf(elected: readonly Elected[]): Told[] {
  return elected.map(({ voter, vote: { first } }) => ({ voter, first }));
}

function placeOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(":") + 1));
}
