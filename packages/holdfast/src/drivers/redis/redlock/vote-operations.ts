import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest } from "../../../driver.ts";
import { withProposedFence } from "../protocol/operation.ts";
import { encodeMetadata } from "../protocol/metadata.ts";
import type { QuorumNode } from "./quorum-node.ts";
import type { NodeSet } from "./node-set.ts";

interface VoteOperationsOptions {
  readonly clock: Clock;
  readonly claimMs: number;
  readonly nodeSet: NodeSet;
  readonly request: AcquireRequest;
  /** When its request stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  readonly token: string;
  readonly ignoresQueueLimit: boolean;
}

/** What a bid says to a node, in the words of the script. */
export class VoteOperations {
  readonly #token: string;
  readonly #ttlMs: string;
  readonly #fencingCount: string;
  /** An owner's own words. */
  readonly #info: string;
  /** How many numbers a grant has. */
  readonly #count: number;
  /** How a place in a queue is asked for. */
  readonly #queueArgument: string;
  readonly #nodeSet: NodeSet;
  /** What a queue member says between its token and the kind of its channel. */
  readonly #queueArgs: string;
  /** The same with the kind: that of most nodes. */
  #queueEntry = "";
  /** Most nodes are asked in the same words: they get one array. */
  #lastRequest: readonly string[] = [];
  #args: readonly string[] = [];

  constructor(options: VoteOperationsOptions) {
    const { clock, claimMs, nodeSet, request, deadline, token, ignoresQueueLimit } = options;
    const { ttlMs, fencingCount, info } = request;
    const remainingMs = deadline - clock.now();
    // A node's clock may be ahead of the median: it must not pass over who still waits.
    const { maxClockDifferenceMs } = nodeSet;
    const until =
      remainingMs === Infinity ? 0 : Math.ceil(nodeSet.micros() / 1000 + remainingMs + maxClockDifferenceMs);
    this.#queueArgs = `${Math.min(ttlMs, claimMs)} ${fencingCount} ${until}`;
    this.#token = token;
    this.#ttlMs = String(ttlMs);
    this.#fencingCount = String(fencingCount);
    this.#count = fencingCount;
    this.#info = encodeMetadata(info);
    this.#queueArgument = ignoresQueueLimit ? "3" : "2";
    this.#nodeSet = nodeSet;
  }

  /** The request for a node's vote. @param waits a place in its queue is wanted as well */
  request(node: QuorumNode, proposedFence: string, waits: boolean): readonly string[] {
    const queueEntry = this.queueEntryOn(node);
    const wait = waits ? this.#queueArgument : "0";
    const [lastProposal, lastEntry, lastWait] = this.#lastRequest;
    if (lastProposal !== proposedFence || lastEntry !== queueEntry || lastWait !== wait) {
      this.#lastRequest = [proposedFence, queueEntry, wait];
      const args = ["acquire", this.#token, queueEntry, this.#ttlMs, this.#fencingCount, wait, this.#info];
      this.#args = withProposedFence([...args, this.#nodeSet.latestExecution()], proposedFence);
    }
    return this.#args;
  }

  /** The vote with this number is given back, and asked for again. */
  yield(node: QuorumNode, number: number, proposedFence: string): readonly string[] {
    const args = [
      "yield",
      this.#token,
      this.queueEntryOn(node),
      String(number),
      this.#ttlMs,
      this.#fencingCount,
      this.#info,
      this.#nodeSet.latestExecution(),
    ];
    return withProposedFence(args, proposedFence);
  }

  /** The grant shall have this number from now on, where it is not above it already. */
  raiseFence(number: number): readonly string[] {
    return withProposedFence(["raiseFence", this.#token, String(number), this.#fencingCount], String(number));
  }

  /** What its queue member says on this node after the token. */
  queueEntryOn(node: QuorumNode): string {
    const kind = node.server.channelKind;
    if (!this.#queueEntry.endsWith(kind)) {
      this.#queueEntry = `${this.#queueArgs} ${kind}`;
    }
    return this.#queueEntry;
  }

  /** A node says no more of a usual grant than its first number. */
  grantFrom(first: number): readonly unknown[] {
    return [1, first, first + this.#count - 1];
  }
}
