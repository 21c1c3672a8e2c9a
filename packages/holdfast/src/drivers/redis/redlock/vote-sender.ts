import type { Clock, Timer } from "../../../runtime/clock.ts";
import { unresponsiveError } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Reply } from "../protocol/operation.ts";
import type { VoteOperations } from "./vote-operations.ts";
import type { VoteState } from "./vote-state.ts";

export interface VoteSenderHost {
  readonly clock: Clock;
  readonly keys: LockKeys;
  readonly token: string;
  readonly nodeTimeoutMs: number;
  readonly waits: boolean;
  readonly operations: VoteOperations;
}

export interface SentVoteRequest {
  /** The number of the vote that the request yields; 0: none. */
  readonly yielded: number;
  /** The position of the request among all requests to this node. */
  readonly requestNumber: number;
}

interface VoteReplyListener {
  answered(reply: Reply, request: SentVoteRequest): void;
  failed(error: unknown): void;
}

/** Sends the requests for one node's vote, and records what each request may leave on the node. */
export class VoteSender {
  /** The requests sent so far. */
  count = 0;
  /** Whether the last request asked for a queue entry as well. */
  requestedQueueing = false;
  readonly #host: VoteSenderHost;
  readonly #state: VoteState;
  readonly #listener: VoteReplyListener;

  constructor(host: VoteSenderHost, state: VoteState, listener: VoteReplyListener) {
    this.#host = host;
    this.#state = state;
    this.#listener = listener;
  }

  /** @param yielded the number of the vote that the request yields; 0: none */
  send(yielded: number, proposedFence: string): void {
    const { keys, operations, token, waits } = this.#host;
    const { node, residue, mayQueue } = this.#state;
    this.requestedQueueing = waits && mayQueue;
    node.releaseQueue.cancelCleanUp(token); // a clean-up from a quarantine of the node would end the new request
    const args =
      yielded > 0
        ? operations.yield(node, yielded, proposedFence)
        : operations.request(node, proposedFence, this.requestedQueueing);
    residue.history.sent(Number(args.at(-1)));
    residue.add();
    this.count += 1;
    const request = { yielded, requestNumber: this.count };
    node.server.perform({
      keys,
      args,
      answered: (reply) => this.#listener.answered(reply, request),
      failed: (error) => this.#listener.failed(error),
    });
  }

  /**
   * Connects to a node that was never reached. After `nodeTimeoutMs` the node counts as unresponsive, but a later handshake still
   * calls `connected`.
   */
  connect(connected: () => void, failed: (error: unknown) => void): void {
    const { clock, nodeTimeoutMs } = this.#host;
    const handshakeFailed = (error: unknown): void => {
      clock.clearTimer(timer);
      failed(error);
    };
    const timer: Timer = clock.setTimer(() => handshakeFailed(unresponsiveError()), nodeTimeoutMs);
    this.#state.node.handshake().then(() => {
      clock.clearTimer(timer);
      connected();
    }, handshakeFailed);
  }
}
