import type { Clock } from "../../../clock.ts";
import type { Grant } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import { TimerQueue } from "../../../timer-queue.ts";
import { engineEnd } from "../../../validity.ts";
import type { KeySpace } from "../keys.ts";
import type { PushedGrant } from "../message.ts";
import { TokenTable } from "../token-table.ts";
import type { Ballot } from "./ballot.ts";
import type { Bid, Election } from "./bid.ts";
import type { Electorate } from "./electorate.ts";
import { QuorumHold } from "./hold.ts";
import type { NamedAttempts } from "./named-attempts.ts";
import type { PassingOn } from "./passing-on.ts";
import { QuorumRelease } from "./release.ts";
import type { QuorumRequest } from "./request.ts";
import { TakingBack } from "./taking-back.ts";
import type { Vote } from "./vote.ts";
import type { Voter } from "./voter.ts";

interface HoldingsOptions {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  readonly keySpace: KeySpace;
  readonly attempts: NamedAttempts;
}

/**
 * What this process has on the nodes, by token: bids under way, grants in use, grants that are being released. What a node has of
 * none of these is taken back from it, unless it is left for a repeat.
 */
export class Holdings {
  readonly #options: HoldingsOptions;
  readonly #bids = new TokenTable<Bid>();
  /** Forgotten when the nodes have forgotten them. */
  readonly #holds = new TokenTable<QuorumHold>();
  readonly #ends: TimerQueue<QuorumHold>;
  readonly #releases = new TokenTable<QuorumRelease>();
  /** Of which it is not known yet whether they were still ours. */
  readonly #passings = new TokenTable<PassingOn>();
  readonly #takingBack: TakingBack;

  constructor(options: HoldingsOptions) {
    this.#options = options;
    this.#takingBack = new TakingBack(options.electorate, options.clock);
    this.#ends = new TimerQueue(options.clock, (hold) => {
      this.forget(hold);
    });
  }

  /** What is heard of its token goes to that bid from now on. */
  opened(bid: Bid): void {
    if (!this.#bids.get(bid.token)) {
      this.#bids.set(bid.token, bid);
    }
    this.#takingBack.keep(bid.token); // it may be the token of an earlier bid, which was given up
  }

  /** The bid won: the votes are one grant from now on. */
  elected(bid: Bid, { key, ttlMs, attemptId }: QuorumRequest, election: Election): Grant {
    this.#close(bid);
    const { token, ballots, first, last, validity, isClaim } = election;
    this.#forgetLost(token);
    const hold = this.holdOf(key, token, bid);
    // A repeat has the number that the grant was told with, while it is that grant; else it is another one of that token.
    const isSameGrant = hold.fencingNumber !== undefined && hold.isStill(election.told());
    const number = isSameGrant ? (hold.fencingNumber ?? first) : first;
    hold.fencingNumber = number;
    hold.attemptId = attemptId;
    const lasts = hold.validity !== undefined && hold.validity.until > validity.until;
    hold.validity = isSameGrant && lasts ? hold.validity : validity;
    for (const { voter, vote } of ballots) {
      hold.add(voter, vote.first, vote.runId);
    }
    this.#ends.schedule(hold, Math.max(hold.dueAt, engineEnd(validity) + ttlMs));
    this.#takingBack.keep(token); // given up by an earlier bid, or given back by a node that did not vote
    if (token !== bid.token) {
      this.#takingBack.bid(bid);
    }
    return { key, token, fencingToken: BigInt(number), fencingCount: last - first + 1, validity, isClaim };
  }

  /** The bid is over without a grant: what the nodes may have of it is taken back, or is left for a repeat to claim. */
  abandoned(bid: Bid, isClaimable: boolean): void {
    this.#close(bid);
    if (isClaimable) {
      this.#options.attempts.leave(bid.token);
    } else {
      this.#takingBack.bid(bid);
    }
  }

  /** Releases a grant, of this process or of another one. Settles as a release of the driver does. */
  release(key: string, token: string, until: number, fencingToken?: bigint): Promise<boolean> {
    const hold = this.holdOf(key, token);
    this.forget(hold);
    this.#options.attempts.release(hold);
    const release = new QuorumRelease(this.#options.electorate, hold, { fencingToken });
    this.#releases.set(token, release);
    release.begin(until, () => {
      if (this.#releases.get(token) === release) {
        this.#releases.delete(token);
      }
    });
    return release.result;
  }

  /** A grant is given up by being passed on. */
  passedOn(passing: PassingOn): void {
    const { token } = passing;
    const settled = (): void => {
      this.#passings.delete(token);
    };
    this.#passings.set(token, passing);
    passing.released.then(settled, settled);
  }

  /** @param bid that won it; undefined: it is another process's, if we have none */
  holdOf(key: string, token: string, bid?: Bid): QuorumHold {
    let hold = this.#holds.get(token);
    if (!hold) {
      const { clock, keySpace, maxTtlMs } = this.#options;
      hold = new QuorumHold(this.#options, key, keySpace.keysOf(key), token, bid);
      this.#holds.set(token, hold);
      this.#ends.schedule(hold, clock.now() + maxTtlMs);
    }
    return hold;
  }

  /** It is asked to last so much longer. */
  prolong(hold: QuorumHold, ttlMs: number): void {
    const end = this.#options.clock.now() + ttlMs;
    if (hold.dueAt < end) {
      this.#ends.schedule(hold, end);
    }
  }

  forget(hold: QuorumHold): void {
    hold.isOver = true;
    this.#holds.delete(hold.token);
    this.#ends.cancel(hold);
  }

  /** What was lost stays lost: a later grant of the same token is another one. */
  #forgetLost(token: string): void {
    const known = this.#holds.get(token);
    if (known?.isLost === true) {
      this.forget(known);
    }
  }

  /** A lease of this process stands on it: a repeat that joins it may not give its votes back, nor let them expire. */
  isHeld(token: string): boolean {
    return this.#holds.get(token)?.isLost === false;
  }

  /** A lease of this process stood on it, and was given back. */
  isReleased(token: string): boolean {
    return this.#options.attempts.isReleased(token);
  }

  /** A node still has what was given back. */
  takeBackReleased(bid: Bid, ballot: Ballot, token: string): void {
    const release = this.#releases.get(token);
    this.#takingBack.released(bid, ballot, token, (wasReleased) => {
      if (wasReleased) {
        release?.wasTakenBack(ballot.voter);
      }
    });
  }

  /** A node has something of a bid that it cannot vote for. */
  givenBack(bid: Bid, ballot: Ballot): void {
    this.#takingBack.ballot(ballot, bid);
  }

  /** A node has something of a bid that is over. */
  leftBehind(bid: Bid, ballot: Ballot, vote: Vote | undefined): void {
    const token = vote?.token ?? bid.token;
    const hold = this.#holds.get(token);
    if (hold) {
      if (vote) {
        this.#heardLate(hold, ballot.voter, vote);
      }
    } else if (
      !this.#isLeftToBid(bid.token, ballot.voter) &&
      !this.#options.attempts.isClaimable(bid.token)
    ) {
      const takeBack = (): void => {
        this.#takingBack.ballot(ballot, bid);
      };
      this.#takeBackBehind(token, ballot.voter, vote !== undefined, takeBack);
    }
  }

  /** What came late of a token is taken back; where that is being given up, in such a way that nobody takes it for lost. */
  #takeBackBehind(token: string, voter: Voter, isVote: boolean, takeBack: () => void): void {
    const release = this.#releases.get(token);
    const passing = this.#passings.get(token);
    if (passing) {
      passing.heardLate(voter, takeBack);
    } else if (!release) {
      takeBack();
    } else if (isVote) {
      release.heardLate(voter, takeBack);
    } else {
      release.wasQueued(voter, takeBack);
    }
  }

  /** A node has granted something, by message. */
  granted(index: number, grant: PushedGrant): void {
    const { electorate, attempts, keySpace } = this.#options;
    const bid = this.#bids.get(grant.token);
    const hold = this.#holds.get(grant.token);
    const voter = electorate.voters[index] as Voter;
    if (bid?.isOpen === true) {
      bid.ballots[index]?.granted(grant);
    } else if (hold) {
      if (grant.runId === voter.guard.runId) {
        this.#heardLate(hold, voter, grant);
      }
    } else if (!attempts.isClaimable(grant.token)) {
      const key = keySpace.keyOf(grant.lock);
      if (key !== undefined) {
        this.#takeBackBehind(grant.token, voter, true, () => {
          this.#takingBack.pushed(voter, key, keySpace.keysOf(key), grant.token, grant.ttlMs);
        });
      }
    }
  }

  /** A node wants to be asked again. */
  askAgain(index: number, token: string): void {
    const bid = this.#bids.get(token);
    if (bid?.isOpen === true) {
      bid.ballots[index]?.ask();
    }
  }

  /** A rival that came earlier asks a node's vote with this number back. */
  inquired(index: number, token: string, number: number): void {
    if (!this.isHeld(token)) {
      this.#bids.get(token)?.ballots[index]?.inquired(number);
    }
  }

  /** A node has ended a grant. @returns what is lost by that */
  ended(index: number, token: string, reason: LossReason): QuorumHold | undefined {
    const voter = this.#options.electorate.voters[index] as Voter;
    this.#bids.get(token)?.ballots[index]?.broken();
    const hold = this.#holds.get(token);
    const wasLost = hold?.isLost;
    return hold?.end(voter, reason) === true && wasLost === false ? hold : undefined;
  }

  /** Of a lost grant: what is left of it on the nodes that did not end it themselves. */
  takeBackLost(hold: QuorumHold): void {
    for (const voter of this.#options.electorate.voters) {
      this.#takeBackLostOn(voter, hold);
    }
  }

  /** @returns the releases that are still under way */
  close(): Promise<void>[] {
    this.#ends.clear();
    return this.#releases.items().map(({ done }) => done);
  }

  /** A node's vote came when the grant was in use already, or was over. */
  #heardLate(hold: QuorumHold, voter: Voter, { first, runId }: Pick<Vote, "first" | "runId">): void {
    if (hold.isLost) {
      this.#takeBackLostOn(voter, hold);
    } else if (!this.#options.electorate.quarantineOf(voter)) {
      hold.add(voter, first, runId);
    }
  }

  #takeBackLostOn(voter: Voter, hold: QuorumHold): void {
    if (!this.#isLeftToBid(hold.token, voter)) {
      this.#takingBack.lost(hold, voter);
    }
  }

  /** A later bid with this token is open: that one counts on what a node has of it, or leaves it to its TTL, as a repeat does. */
  #isLeftToBid(token: string, voter: Voter): boolean {
    const bid = this.#bids.get(token);
    if (bid?.isOpen !== true) {
      return false;
    }
    bid.ballots[voter.index]?.left();
    return true;
  }

  #close(bid: Bid): void {
    if (this.#bids.get(bid.token) === bid) {
      this.#bids.delete(bid.token);
    }
  }
}
