import { QuorumError, type NodeVote } from "../../../errors.ts";
import { messageOf, outcomeOf } from "../server/errors.ts";
import {
  releaseOperation,
  type ReleaseOperation,
  type PendingRelease,
  type ReleaseListener,
} from "../server/releases.ts";
import type { NodeSet } from "./node-set.ts";
import type { HeldGrant } from "./held-grant.ts";
import type { QuorumNode } from "./quorum-node.ts";

/**
 * The release of a grant, or its downgrade from writer to reader, on all nodes that may have the grant. The release continues after
 * its result until each node has replied or has dropped the grant.
 */
export class QuorumRelease {
  /** Whether a majority still had the grant. Rejects with a `QuorumError` after the budget if too few nodes reply. */
  readonly result: Promise<boolean>;
  /** Every node has replied, or its budget has passed. */
  readonly done: Promise<void>;
  readonly #nodeSet: NodeSet;
  readonly #grant: HeldGrant;
  /** By node; undefined: the node cannot have the grant. */
  readonly #releases: readonly (NodeRelease | undefined)[];
  readonly #startedAt: number;
  /** The nodes without a reply. */
  #pendingCount = 0;
  #releasedCount = 0;
  #notHeldCount = 0;
  #onDone: (() => void) | undefined;
  #resolve!: (released: boolean) => void;
  #reject!: (error: unknown) => void;
  #finish!: () => void;

  constructor(nodeSet: NodeSet, grant: HeldGrant) {
    this.#nodeSet = nodeSet;
    this.#grant = grant;
    this.#startedAt = nodeSet.now();
    this.#releases = nodeSet.nodes.map((node) =>
      grant.mayBeStoredOn(node) ? new NodeRelease(this, node) : undefined,
    );
    for (const release of this.#releases) {
      this.#pendingCount += release ? 1 : 0;
    }
    this.#notHeldCount = nodeSet.nodes.length - this.#pendingCount;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Every node has replied, or its budget has passed. */
  get isDone(): boolean {
    return this.#pendingCount === 0;
  }

  /** @param until when the grant expires on the nodes, on the scale of `clock.now()` */
  begin(until: number, onDone?: () => void, name: ReleaseOperation = "release"): void {
    const { key, keys, token } = this.#grant;
    const proposedFence = this.#nodeSet.nextProposal();
    this.#onDone = onDone;
    this.#judge();
    let pending: PendingRelease | undefined;
    let args: readonly string[] = [];
    for (const release of this.#releases) {
      if (release) {
        const { node } = release;
        const residueExpiry = this.#grant.residueExpiry(node, until);
        const entryTail = this.#grant.entryTailOn(node);
        const earlier = name === "release" ? this.#grant.earlierRequestsOn(node) : undefined;
        if (
          pending?.entryTail !== entryTail ||
          pending.until !== residueExpiry ||
          pending.earlier !== earlier
        ) {
          pending = { key, keys, token, entryTail, until: residueExpiry, proposedFence, earlier }; // most nodes get the same operation
          args = releaseOperation(pending, name);
        }
        node.releaseQueue.enqueue(pending, release, name, args);
      }
    }
  }

  /** A node has replied. */
  answered(release: NodeRelease): void {
    this.#releasedCount += release.wasReleased ? 1 : 0;
    this.#notHeldCount += release.wasReleased ? 0 : 1;
    release.latencyMs = this.#nodeSet.now() - this.#startedAt;
    this.ended(release);
  }

  /** The result no longer waits for this node. */
  ended(release: NodeRelease): void {
    this.#pendingCount -= release.isOpen ? 1 : 0;
    release.isOpen = false;
    this.#judge();
  }

  /**
   * A vote for the grant arrived after the start of the release. If the node confirms the release, the vote is released as well.
   * Otherwise the vote must be cleaned up.
   */
  lateVote(node: QuorumNode, cleanUp: () => void): void {
    const release = this.#releases[node.index];
    if (release?.isOpen === true) {
      release.ifUnconfirmed = cleanUp;
    } else {
      cleanUp();
    }
  }

  #judge(): void {
    this.#decide();
    if (this.isDone) {
      this.#finish();
      this.#onDone?.();
    }
  }

  #decide(): void {
    const { majority, nodes } = this.#nodeSet;
    if (this.#releasedCount >= majority) {
      this.#resolve(true);
    } else if (this.#notHeldCount > nodes.length - majority) {
      this.#resolve(false);
    } else if (this.isDone) {
      this.#reject(this.#error());
    }
  }

  #error(): QuorumError {
    const votes = this.#nodeSet.nodes.map((quorumNode): NodeVote => {
      const node = quorumNode.name;
      const { error, wasReleased = false, latencyMs = null } = this.#releases[quorumNode.index] ?? {};
      if (error !== undefined) {
        const vote = outcomeOf(error) === "unknown" ? "timeout" : "error";
        return { node, vote, latencyMs: null, reason: messageOf(error) };
      }
      return wasReleased
        ? { node, vote: "granted", latencyMs, reason: null }
        : { node, vote: "held", latencyMs, reason: "the node did not have the grant" };
    });
    return new QuorumError({ key: this.#grant.key, votes, outcome: "unknown", retryable: true });
  }
}

/** The release on one node, and the reply of the node. */
class NodeRelease implements ReleaseListener {
  readonly node: QuorumNode;
  isOpen = true;
  wasReleased = false;
  latencyMs: number | null = null;
  error: unknown;
  /** Cleans up a late vote, if the node itself does not report that it released the grant. */
  ifUnconfirmed: (() => void) | undefined;
  readonly #release: QuorumRelease;

  constructor(release: QuorumRelease, node: QuorumNode) {
    this.#release = release;
    this.node = node;
  }

  released(wasReleased: boolean, isConfirmed: boolean): void {
    this.wasReleased = wasReleased;
    this.error = undefined;
    this.#release.answered(this);
    if (!isConfirmed) {
      this.ifUnconfirmed?.();
    }
  }

  failed(error: unknown): void {
    this.error = error;
    this.#release.ended(this);
  }
}
