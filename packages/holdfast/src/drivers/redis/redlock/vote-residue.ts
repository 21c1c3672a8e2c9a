import { RequestHistory } from "../server/request-history.ts";
import { outcomeOf } from "../server/errors.ts";
import type { QuorumNode } from "./quorum-node.ts";

/**
 * The residue of the requests for one node's vote: the node may have a grant, or a queue entry. The residue outlives its majority
 * attempt, because late replies and failures still change the residue.
 */
export class VoteResidue {
  readonly history: RequestHistory = new RequestHistory();
  /** The queue position in the node's last reply; undefined: the node has no queue entry. */
  position: number | undefined;
  /** A reply to the last request is outstanding. */
  isPending = true;
  /** The requests that may have left something on the node. */
  #unconfirmed = 0;

  /** Whether the node may have a grant or a queue entry. */
  get mayExist(): boolean {
    return this.#unconfirmed > 0;
  }

  /** Whether the node may have a queue entry. */
  get mayBeQueued(): boolean {
    return this.position !== undefined || this.isUnanswered || this.isPending;
  }

  /** Whether the last request got no reply. */
  get isUnanswered(): boolean {
    return this.history.failures > 0;
  }

  /** A request was sent that may leave something on the node. */
  add(): void {
    this.#unconfirmed += 1;
  }

  /** A request failed, or the node refused the request. If the request had no effect, it left nothing on the node. */
  requestFailed(error: unknown): void {
    this.history.failures += 1;
    if (this.#unconfirmed > 0 && outcomeOf(error) === "none") {
      this.#unconfirmed -= 1;
    }
  }

  /** The node confirmed that it has neither a grant nor a queue entry. */
  clear(): void {
    this.#unconfirmed = 0;
  }
}

/** The residue of an elected majority attempt on all nodes. */
export interface AttemptResidue {
  /** By node. */
  readonly nodes: readonly VoteResidue[];
  /** The residue's queue entry on a node, without the token. */
  readonly queueEntryOn: (node: QuorumNode) => string;
}
