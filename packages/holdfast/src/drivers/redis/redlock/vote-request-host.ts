import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import type { NodeSet } from "./node-set.ts";
import type { VoteSenderHost } from "./vote-sender.ts";
import type { Vote, VoteContext } from "./vote.ts";

/**
 * The majority attempt of a vote request.
 * @typeParam Request - the class of the vote requests
 */
export interface VoteRequestHost<Request> extends VoteContext, VoteSenderHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly nodeSet: NodeSet;
  /** Whether replies still matter. */
  readonly isOpen: boolean;
  /** The attempt has a majority, and yields no vote. */
  readonly hasMajority: boolean;
  /** A vote was counted or lost, or a pending reply arrived. */
  onReply(voteRequest: Request): void;
  /** A reply to an ended attempt shows a grant or a queue entry on the node. */
  handleLateReply(voteRequest: Request, vote: Vote | undefined): void;
  /** The node cannot vote: its residue must be cleaned up. */
  cleanUp(voteRequest: Request): void;
}
