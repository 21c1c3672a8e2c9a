import { QuorumError, type NodeVote } from "../../../errors.ts";
import { messageOf, outcomeOf } from "../server/errors.ts";
import {
  cleanUpOperation,
  type ReleaseOperation,
  type PendingRelease,
  type ReleaseListener,
} from "../server/pending-release.ts";
import type { NodeSet } from "./node-set.ts";
import type { HeldGrant } from "./held-grant.ts";
import type { QuorumNode } from "./quorum-node.ts";

/**
 * The release of a grant, or of what a reader does not need of a writer's, on all nodes that may have something of it; goes on
 * behind its result until each has answered or forgotten.
 */
export class QuorumRelease {
  /** Whether a majority still had it. Rejects with a `QuorumError` after the budget where too few answer. */
  readonly result: Promise<boolean>;
  /** Every node has answered, or was tried for its budget. */
  readonly done: Promise<void>;
  readonly #nodeSet: NodeSet;
  readonly #grant: HeldGrant;
  /** By node; undefined: nothing of it can be there. */
  readonly #releases: readonly (NodeRelease | undefined)[];
  readonly #startedAt: number;
  /** How many nodes have not answered yet. */
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

  /** Every node has answered, or was tried for its budget. */
  get isDone(): boolean {
    return this.#pendingCount === 0;
  }

  /** @param until when the nodes will have forgotten it by themselves, on the scale of `clock.now()` */
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
        const queueArgs = this.#grant.queueArgsOn(node);
        const latest = name === "release" ? this.#grant.latestExecutionOn(node) : 0;
        if (
          pending?.queueArgs !== queueArgs ||
          pending.until !== residueExpiry ||
          pending.latest !== latest
        ) {
          pending = { key, keys, token, queueArgs, until: residueExpiry, proposedFence, latest }; // most nodes are told the same
          args = cleanUpOperation(pending, name);
        }
        node.releaseQueue.enqueue(pending, release, name, args);
      }
    }
  }

  /** A node has answered. */
  answered(release: NodeRelease): void {
    this.#releasedCount += release.wasReleased ? 1 : 0;
    this.#notHeldCount += release.wasReleased ? 0 : 1;
    release.latencyMs = this.#nodeSet.now() - this.#startedAt;
    this.ended(release);
  }

  /** Nobody waits for this node any more. */
  ended(release: NodeRelease): void {
    this.#pendingCount -= release.isOpen ? 1 : 0;
    release.isOpen = false;
    this.#judge();
  }

  /**
   * A vote for the grant came after it was given up. Where the release to that node is on its way behind it, that will have taken
   * it back; else it has to be taken back once more.
   */
  lateVote(node: QuorumNode, cleanUp: () => void): void {
    this.#afterReply(node, (isConfirmed) => {
      if (!isConfirmed) {
        cleanUp();
      }
    });
  }

  /** The same of a place in a queue. It is not taken back before the release is answered: that would end what is released. */
  lateQueueEntry(node: QuorumNode, cleanUp: () => void): void {
    this.#afterReply(node, cleanUp);
  }

  #afterReply(node: QuorumNode, action: (isConfirmed: boolean) => void): void {
    const release = this.#releases[node.index];
    if (release?.isOpen === true) {
      release.afterReply = action;
    } else {
      action(false);
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
        : { node, vote: "held", latencyMs, reason: "it was not ours there" };
    });
    return new QuorumError({ key: this.#grant.key, votes, outcome: "unknown", retryable: true });
  }
}

/** The part of one node, and what it said. */
class NodeRelease implements ReleaseListener {
  readonly node: QuorumNode;
  isOpen = true;
  wasReleased = false;
  latencyMs: number | null = null;
  error: unknown;
  /** To be done when the node has answered, for what came late. Is told whether the node itself says that it released. */
  afterReply: ((isConfirmed: boolean) => void) | undefined;
  readonly #release: QuorumRelease;

  constructor(release: QuorumRelease, node: QuorumNode) {
    this.#release = release;
    this.node = node;
  }

  released(wasReleased: boolean, isConfirmed: boolean): void {
    this.wasReleased = wasReleased;
    this.error = undefined;
    this.#release.answered(this);
    this.afterReply?.(isConfirmed);
  }

  failed(error: unknown): void {
    this.error = error;
    this.#release.ended(this);
  }
}
