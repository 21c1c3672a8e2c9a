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
  /** When the request stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  readonly token: string;
  readonly ignoresQueueLimit: boolean;
}

/** Builds the operations of one majority attempt for the scripts of the nodes. */
export class VoteOperations {
  readonly #token: string;
  readonly #ttlMs: string;
  readonly #fencingCount: string;
  /** The metadata of the holder. */
  readonly #info: string;
  /** The fencing numbers of one grant. */
  readonly #count: number;
  /** The argument of a request that asks for a queue entry. */
  readonly #queueArgument: string;
  readonly #nodeSet: NodeSet;
  /** The part of a queue entry between the token and the kind of the channel. */
  readonly #queueArgs: string;
  /** The last queue entry, without the token. Most nodes have the same kind of channel. */
  #queueEntry = "";
  /** Most nodes get the same request: they share one array of arguments. */
  #lastRequest: readonly string[] = [];
  #args: readonly string[] = [];

  constructor(options: VoteOperationsOptions) {
    const { clock, claimMs, nodeSet, request, deadline, token, ignoresQueueLimit } = options;
    const { ttlMs, fencingCount, info } = request;
    const remainingMs = deadline - clock.now();
    // A node's clock may be ahead of the median, and must not remove a queue entry whose request still waits.
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

  /**
   * The request for a node's vote.
   * @param waits ask for a queue entry as well
   */
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

  /** Yields the vote with this number, and queues the request again. */
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

  /** Raises the number of the grant to this number, unless the grant has a greater one. */
  raiseFence(number: number): readonly string[] {
    return withProposedFence(["raiseFence", this.#token, String(number), this.#fencingCount], String(number));
  }

  /** The queue entry on this node, without the token. */
  queueEntryOn(node: QuorumNode): string {
    const kind = node.server.channelKind;
    if (!this.#queueEntry.endsWith(kind)) {
      this.#queueEntry = `${this.#queueArgs} ${kind}`;
    }
    return this.#queueEntry;
  }

  /** The full reply of a node that replied with only the first number, as to the usual grant. */
  grantFrom(first: number): readonly unknown[] {
    return [1, first, first + this.#count - 1];
  }
}
