import type { Clock } from "../../../clock.ts";
import type { LockKeys } from "../keys.ts";
import { placeUntil } from "../releaser.ts";
import type { Ballot } from "./ballot.ts";
import type { Bid } from "./bid.ts";
import type { Electorate } from "./electorate.ts";
import type { QuorumHold } from "./hold.ts";
import type { Voter } from "./voter.ts";

/** What nodes may have of what nobody wants any more is taken back from them, until they have forgotten it by themselves. */
export class TakingBack {
  readonly #electorate: Electorate;
  readonly #clock: Clock;

  constructor(electorate: Electorate, clock: Clock) {
    this.#electorate = electorate;
    this.#clock = clock;
  }

  /** Of a bid that is over. */
  bid(bid: Bid): void {
    const candidate = this.#electorate.candidate();
    for (const ballot of bid.ballots) {
      if (ballot.mayHaveLeft) {
        this.ballot(ballot, bid, candidate);
      }
    }
  }

  /** The same on one node. */
  ballot(ballot: Ballot, bid: Bid, candidate: string = this.#electorate.candidate()): void {
    const { voter } = ballot;
    const { key, keys, ttlMs, deadline } = bid.request;
    const now = this.#clock.now();
    const until = Math.max(now + ttlMs, ballot.mayBeQueued ? placeUntil(now, deadline) : 0);
    const terms = bid.wording.memberOn(ballot);
    const { latest } = ballot.attempts;
    voter.releaser.takeBack({ key, keys, token: bid.token, terms, until, candidate, latest });
  }

  /** What a lost grant has on a node that did not know of the loss, or was late with its vote. */
  lost(hold: QuorumHold, voter: Voter): void {
    if (hold.mayBeOn(voter)) {
      const { key, keys, token } = hold;
      const candidate = this.#electorate.candidate();
      const until = hold.forgottenAt(voter, hold.dueAt);
      const [terms, latest] = [hold.termsOn(voter), hold.latestOn(voter)];
      voter.releaser.takeBack({ key, keys, token, terms, until, candidate, latest });
    }
  }

  /** A node granted by message what nobody waits for any more. */
  pushed(voter: Voter, key: string, keys: LockKeys, token: string, ttlMs: number): void {
    const until = this.#clock.now() + ttlMs;
    const candidate = this.#electorate.candidate();
    voter.releaser.takeBack({ key, keys, token, terms: "", until, candidate });
  }

  /** The token is asked for again: what was to take it back must not come behind that. */
  keep(token: string): void {
    for (const { releaser } of this.#electorate.voters) {
      releaser.keep(token);
    }
  }
}
