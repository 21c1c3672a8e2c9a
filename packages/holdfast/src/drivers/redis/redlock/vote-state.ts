import type { Clock } from "../../../runtime/clock.ts";
import type { NodeVote } from "../../../errors.ts";
import { remainingValidityMs } from "../../../validity.ts";
import type { NodeSet } from "./node-set.ts";
import type { QuorumNode } from "./quorum-node.ts";
import type { Quarantine } from "./restart-guard.ts";
import type { Vote } from "./vote.ts";
import { VoteResidue } from "./vote-residue.ts";

/** `asked`: no reply to the last request yet. `full`: the node's queue is full. */
type VoteReply = NodeVote["vote"] | "asked" | "full";

interface VoteStateHost {
  readonly clock: Clock;
  readonly nodeSet: NodeSet;
}

/** The last reply of one node to a majority attempt, and whether the node's vote counts now. */
export class VoteState {
  readonly node: QuorumNode;
  readonly residue: VoteResidue = new VoteResidue();
  vote: Vote | undefined;
  reason: string | null = null;
  latencyMs: number | null = null;
  error: unknown;
  /** The token that has the node's vote instead of this attempt, by the node's last reply. */
  holder = "";
  readonly #host: VoteStateHost;
  #reply: VoteReply = "asked";

  constructor(host: VoteStateHost, node: QuorumNode) {
    this.#host = host;
    this.node = node;
  }

  get reply(): VoteReply {
    return this.#reply;
  }

  set reply(reply: VoteReply) {
    this.#reply = reply;
    this.residue.isPending = reply === "asked";
  }

  get position(): number | undefined {
    return this.residue.position;
  }

  /** A reply to the last request is outstanding. */
  get isPending(): boolean {
    return this.residue.isPending;
  }

  /** Whether the node's reply shows the state of the lock: granted, held by another token, or with a full queue. */
  get hasReplied(): boolean {
    return this.reply === "held" || this.reply === "full" || (this.reply === "granted" && !this.quarantine);
  }

  get hasValidVote(): boolean {
    return this.vote !== undefined && remainingValidityMs(this.vote.validity, this.#host.clock) > 0;
  }

  /** The vote counts only later, because an earlier holder may still rely on its lease. */
  get isWaiting(): boolean {
    return this.vote !== undefined && this.#host.clock.now() < this.vote.countsFrom;
  }

  /** Why the node's vote does not count; undefined: it does. */
  get quarantine(): Quarantine | undefined {
    return this.#host.nodeSet.quarantineOf(this.node, this.vote?.reading);
  }

  /** Whether the last reply counted for nothing because of a quarantine that lasts. */
  get isQuarantined(): boolean {
    return this.reply === "quarantined" && this.quarantine !== undefined;
  }

  /** Whether the client may have a queue entry on this node: the node's notifications reach the client. */
  get mayQueue(): boolean {
    return this.node.server.notificationStatus === "verified";
  }

  /** Whether the vote counts now: the node has not restarted since the vote, and the node's clock was right. */
  get countsNow(): boolean {
    return (
      this.hasValidVote && !this.isWaiting && this.vote?.runId === this.node.guard.runId && !this.quarantine
    );
  }
}
