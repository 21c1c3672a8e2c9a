import type { Clock } from "../../../clock.ts";
import type { AcquireRequest, Grant } from "../../../driver.ts";
import type { Random } from "../../../random.ts";
import type { Holder } from "../../../state.ts";
import type { TimerQueue } from "../../../timer-queue.ts";
import type { Ballot } from "./ballot.ts";
import type { Bid, Election } from "./bid.ts";
import type { Electorate } from "./electorate.ts";
import type { QuorumRequest } from "./request.ts";
import type { Vote } from "./vote.ts";

/** What a request and its bids need of their driver. */
export interface QuorumHost {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly random: Random;
  readonly agenda: TimerQueue<QuorumRequest>;
  readonly commandTimeoutMs: number;
  readonly nodeTimeoutMs: number;
  readonly claimMs: number;
  readonly driftFactor: number;
  /** A token for an attempt; what is heard of it goes to that bid from then on. */
  tokenFor(request: AcquireRequest, ticket: number): string;
  opened(bid: Bid): void;
  /** The bid is over without a grant: what the nodes may have of it is taken back, or is left for a repeat to claim. */
  abandoned(bid: Bid, isClaimable: boolean, name?: "release" | "recant"): void;
  /** The bid won: the votes are one grant from now on. */
  elected(bid: Bid, request: QuorumRequest, election: Election): Grant;
  settled(request: QuorumRequest): void;
  /** A lease of this process stood on it, and was given back. */
  isReleased(token: string): boolean;
  /** A node still has what was given back. */
  takeBackReleased(bid: Bid, ballot: Ballot, token: string): void;
  /** A lease of this process stands on it: a repeat that joins it may not give its votes back, nor let them expire. */
  isHeld(token: string): boolean;
  /** Of the requests for one named attempt the one that asks the nodes. */
  leaderOf(request: QuorumRequest): QuorumRequest | undefined;
  /** A node has something of a bid that it cannot vote for. */
  givenBack(bid: Bid, ballot: Ballot): void;
  /** A node has something of a bid that is over. */
  leftBehind(bid: Bid, ballot: Ballot, vote: Vote | undefined): void;
  holderOf(key: string): Promise<Holder | undefined>;
}
