import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Ballot } from "./vote-request.ts";
import type { Electorate } from "./node-set.ts";
import type { Vote } from "./vote.ts";
import type { Wording } from "./vote-operations.ts";

/** What a ballot needs of the bid that it belongs to. */
export interface Bidder {
  readonly clock: Clock;
  readonly random: Random;
  readonly electorate: Electorate;
  readonly keys: LockKeys;
  readonly token: string;
  readonly ttlMs: number;
  readonly driftFactor: number;
  readonly nodeTimeoutMs: number;
  readonly waits: boolean;
  readonly round: number;
  readonly wording: Wording;
  /** Whether answers still matter. */
  readonly isOpen: boolean;
  /** It has a majority: nobody gets a vote back. */
  readonly isElected: boolean;
  /** A vote came or went, or an answer that was waited for. */
  heard(ballot: Ballot): void;
  /** An answer for a bid that is over shows that the node has something of it. */
  heardTooLate(ballot: Ballot, vote: Vote | undefined): void;
  /** The node does not vote: what it has of us is given back. */
  giveBack(ballot: Ballot): void;
}
