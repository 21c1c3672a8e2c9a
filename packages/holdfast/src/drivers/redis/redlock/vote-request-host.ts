import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { VoteRequest } from "./vote-request.ts";
import type { NodeSet } from "./node-set.ts";
import type { Vote } from "./vote.ts";
import type { VoteOperations } from "./vote-operations.ts";

/** What a ballot needs of the bid that it belongs to. */
export interface VoteRequestHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly nodeSet: NodeSet;
  readonly keys: LockKeys;
  readonly token: string;
  readonly ttlMs: number;
  readonly driftFactor: number;
  readonly nodeTimeoutMs: number;
  readonly waits: boolean;
  readonly round: number;
  readonly operations: VoteOperations;
  /** Whether answers still matter. */
  readonly isOpen: boolean;
  /** It has a majority: nobody gets a vote back. */
  readonly isElected: boolean;
  /** A vote came or went, or an answer that was waited for. */
  onReply(ballot: VoteRequest): void;
  /** An answer for a bid that is over shows that the node has something of it. */
  handleLateReply(ballot: VoteRequest, vote: Vote | undefined): void;
  /** The node does not vote: what it has of us is given back. */
  cleanUp(ballot: VoteRequest): void;
}
