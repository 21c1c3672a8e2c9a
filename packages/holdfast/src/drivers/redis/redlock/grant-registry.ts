import type { Clock } from "../../../runtime/clock.ts";
import type { Grant } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineEnd } from "../../../validity.ts";
import type { KeySpace } from "../protocol/keys.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import { placeUntil, type Leftover } from "../server/release-queue.ts";
import { TokenTable } from "../../../runtime/token-map.ts";
import type { Ballot } from "./vote-request.ts";
import type { Bid, Election } from "./majority-attempt.ts";
import type { Electorate } from "./node-set.ts";
import { QuorumHold, type HoldHost } from "./held-grant.ts";
import { QuorumRelease } from "./release.ts";
import type { QuorumRequest } from "./request.ts";
import { countsFrom, type Vote } from "./vote.ts";
import type { Voter } from "./quorum-node.ts";

interface HoldingsOptions {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  readonly keySpace: KeySpace;
}

/**
 * What this process has on the nodes, by token: bids under way, grants in use, grants that are being released. Decides what a node
 * must have nothing of from now on: what it has of none of these is taken back from it, until it has forgotten that by itself.
 */
export class Holdings {
  readonly #options: HoldingsOptions;
  readonly #bids = new TokenTable<Bid>();
  /** Forgotten when the nodes have forgotten them. */
  readonly #holds = new TokenTable<QuorumHold>();
  readonly #ends: TimerQueue<QuorumHold>;
  readonly #releases = new TokenTable<QuorumRelease>();
  readonly #holdHost: HoldHost;

  constructor(options: HoldingsOptions) {
    this.#options = options;
    this.#holdHost = { ...options, takeBack: (hold, voter) => this.#takeBackHold(hold, voter) };
    this.#ends = new TimerQueue(options.clock, (hold) => this.forget(hold));
  }

  /** What is heard of its token goes to that bid from now on. */
  opened(bid: Bid): void {
    this.#bids.set(bid.token, bid);
  }

  /** The bid won: the votes are one grant from now on. */
  elected(bid: Bid, { key, ttlMs }: QuorumRequest, election: Election): Grant {
    this.#close(bid);
    const { token } = bid;
    const { ballots, first, last, validity, isClaim } = election;
    const hold = this.holdOf(key, token, bid);
    hold.numbers = { first, last };
    hold.validUntil = validity.until;
    for (const { voter, vote } of ballots) {
      hold.add(voter, vote.first, vote.runId);
    }
    this.#ends.schedule(hold, Math.max(hold.dueAt, engineEnd(validity) + ttlMs));
    for (const { releaser } of this.#options.electorate.voters) {
      releaser.keep(token); // given back by a node that did not vote
    }
    return { key, token, fencingToken: BigInt(first), fencingCount: last - first + 1, validity, isClaim };
  }

  /** The bid is over without a grant: what the nodes may have of it is taken back. */
  abandoned(bid: Bid): void {
    this.#close(bid);
    const candidate = this.#options.electorate.candidate();
    for (const ballot of bid.ballots) {
      if (ballot.mayHaveLeft) {
        this.givenBack(bid, ballot, candidate);
      }
    }
  }

  /** Releases a grant, of this process or of another one. Settles as a release of the driver does. */
  release(key: string, token: string, until: number): Promise<boolean> {
    const hold = this.holdOf(key, token);
    this.forget(hold);
    const release = new QuorumRelease(this.#options.electorate, hold);
    this.#releases.set(token, release);
    release.begin(until, () => {
      if (this.#releases.get(token) === release) {
        this.#releases.delete(token);
      }
    });
    return release.result;
  }

  /** @param bid that won it; undefined: it is another process's, if we have none */
  holdOf(key: string, token: string, bid?: Bid): QuorumHold {
    let hold = this.#holds.get(token);
    if (!hold) {
      const { clock, keySpace, maxTtlMs } = this.#options;
      hold = new QuorumHold(this.#holdHost, key, keySpace.keysOf(key), token, bid);
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

  /** A node has something of a bid that it cannot vote for. */
  givenBack(bid: Bid, ballot: Ballot, candidate?: string): void {
    const { key, keys, ttlMs, deadline } = bid.request;
    const { token, wording } = bid;
    const now = this.#options.clock.now();
    const until = Math.max(now + ttlMs, ballot.mayBeQueued ? placeUntil(now, deadline) : 0);
    const [terms, { latest }] = [wording.memberOn(ballot), ballot.attempts];
    this.#takeBack(ballot.voter, { key, keys, token, terms, until, latest }, candidate);
  }

  /** A node has something of a bid that is over. */
  leftBehind(bid: Bid, ballot: Ballot, vote: Vote | undefined): void {
    const { token } = bid;
    const hold = this.#holds.get(token);
    if (hold) {
      if (vote) {
        this.#heardLate(hold, ballot.voter, vote);
      }
    } else {
      this.#takeBackBehind(token, ballot.voter, vote !== undefined, () => this.givenBack(bid, ballot));
    }
  }

  /** What came late of a token is taken back; where that is being given up, in such a way that nobody takes it for lost. */
  #takeBackBehind(token: string, voter: Voter, isVote: boolean, takeBack: () => void): void {
    const release = this.#releases.get(token);
    if (!release) {
      takeBack();
    } else if (isVote) {
      release.heardLate(voter, takeBack);
    } else {
      release.wasQueued(voter, takeBack);
    }
  }

  /** A node has granted something, by message. */
  granted(index: number, grant: PushedGrant): void {
    const { electorate, keySpace } = this.#options;
    const bid = this.#bids.get(grant.token);
    const hold = this.#holds.get(grant.token);
    const voter = electorate.voters[index] as Voter;
    if (bid?.isOpen === true) {
      bid.ballots[index]?.granted(grant);
    } else if (hold) {
      if (grant.runId === voter.guard.runId) {
        const { clock, driftFactor } = this.#options;
        const { first, runId, waitMs } = grant;
        const from = countsFrom(clock.now(), waitMs, driftFactor);
        this.#heardLate(hold, voter, { first, runId, countsFrom: from });
      }
    } else if (voter.node.hearsAlone) {
      const key = keySpace.keyOf(grant.lock);
      if (key !== undefined) {
        const { token } = grant;
        this.#takeBackBehind(token, voter, true, () => {
          const until = this.#options.clock.now() + grant.ttlMs;
          this.#takeBack(voter, { key, keys: keySpace.keysOf(key), token, terms: "", until });
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
    this.#bids.get(token)?.ballots[index]?.inquired(number);
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
      this.#takeBackHold(hold, voter);
    }
  }

  /** @returns the releases that are still under way */
  close(): Promise<void>[] {
    this.#ends.clear();
    return this.#releases.items().map(({ done }) => done);
  }

  /** A node's vote came when the grant was in use already, or was over. */
  #heardLate(hold: QuorumHold, voter: Voter, vote: Pick<Vote, "first" | "runId" | "countsFrom">): void {
    if (hold.isLost) {
      this.#takeBackHold(hold, voter);
    } else if (!this.#options.electorate.quarantineOf(voter)) {
      hold.add(voter, vote.first, vote.runId, vote.countsFrom);
    }
  }

  /** A node did not know that the grant is over, or was late with its vote. */
  #takeBackHold(hold: QuorumHold, voter: Voter): void {
    if (hold.mayBeOn(voter)) {
      const { key, keys, token } = hold;
      const [terms, latest] = [hold.termsOn(voter), hold.latestOn(voter)];
      this.#takeBack(voter, { key, keys, token, terms, until: hold.forgottenAt(voter, hold.dueAt), latest });
    }
  }

  #takeBack(
    { releaser }: Voter,
    leftover: Leftover,
    candidate: string = this.#options.electorate.candidate(),
  ): void {
    releaser.takeBack({ ...leftover, candidate });
  }

  #close(bid: Bid): void {
    this.#bids.delete(bid.token);
  }
}
