import { asMicrotask, type Clock, instantNow, type Timer } from "../../../runtime/clock.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import type { NodeSet } from "./node-set.ts";
import {
  nextRequestFor,
  type Vote,
  voteByNotification,
  voteByReply,
  type VoteContext,
  type VoteOperations,
  VoteState,
  VoteYield,
} from "./vote.ts";
import { messageOf, serverRefusal, unresponsive } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { acquireStatus, type Reply } from "../protocol/operation.ts";
import { EngineError } from "../../../errors.ts";
import type { RequestHistory } from "../server/request-history.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import { foreignPollDelay, queuedPollDelay, unqueuedPollDelay } from "../server/poll-delays.ts";
import { readingOf } from "./clock-agreement.ts";
import { type Quarantine, quarantineMessage, quarantineRetryMs } from "./restart-guard.ts";
import type { QuorumNode } from "./quorum-node.ts";

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

interface VoteSenderHost {
  readonly clock: Clock;
  readonly keys: LockKeys;
  readonly token: string;
  readonly nodeTimeoutMs: number;
  readonly waits: boolean;
  readonly operations: VoteOperations;
}

interface SentVoteRequest {
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
class VoteSender {
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
    const timer: Timer = clock.setTimer(() => handshakeFailed(unresponsive), nodeTimeoutMs);
    this.#state.node.handshake().then(() => {
      clock.clearTimer(timer);
      connected();
    }, handshakeFailed);
  }
}

/**
 * The request of one majority attempt for one node's vote: sends the request, retries it, and reads the node's replies and
 * notifications. The attempt decides what the votes of all nodes amount to.
 */
export class VoteRequest extends VoteState {
  /** When to send the next request if no reply or notification arrives before, on the scale of `clock.now()`. */
  dueAt: number = Infinity;
  /** The node was requested to raise its fencing number, and has not replied yet. */
  isRaisingFence = false;
  readonly #host: VoteRequestHost<VoteRequest>;
  readonly #voteYield: VoteYield = new VoteYield();
  readonly #sender: VoteSender;
  /** How many requests precede the last clean-up. Their replies change no vote, because the clean-up removes their residue. */
  #requestsBeforeCleanUp = 0;

  constructor(host: VoteRequestHost<VoteRequest>, node: QuorumNode) {
    super(host, node);
    this.#host = host;
    this.#sender = new VoteSender(host, this, this);
  }

  get history(): RequestHistory {
    return this.residue.history;
  }

  /** The time `dueAt` has come: a vote that had to wait counts now, otherwise the request is sent again. */
  wake(proposedFence: string): void {
    if (this.vote && this.hasValidVote && !this.isWaiting) {
      this.dueAt = Infinity;
      this.#host.onReply(this);
    } else {
      this.send(proposedFence);
    }
  }

  /** Requests the vote. A repeated request keeps the queue entry and the vote. */
  send(proposedFence: string = this.#host.nodeSet.nextProposal()): void {
    this.dueAt = Infinity;
    this.history.count += 1;
    if (!this.node.isReady) {
      this.#sendAfterHandshake(proposedFence);
      return;
    }
    const quarantine = this.#host.nodeSet.requestQuarantineOf(this.node);
    if (!quarantine) {
      this.#sender.send(this.#voteYield.number, proposedFence);
      return;
    }
    this.#recordQuarantine(quarantine);
    asMicrotask(() => this.#host.onReply(this));
  }

  /** A notification grants the vote. */
  granted(grant: PushedGrant): void {
    const { nodeSet } = this.#host;
    const { server, guard } = this.node;
    const quarantine = nodeSet.requestQuarantineOf(this.node);
    const at = instantNow(this.#host.clock);
    const ageMs = server.grantAges.ageOf(grant.runId, grant.serverMicros, at);
    if (quarantine) {
      this.#cleanUpVote(quarantine);
    } else if (ageMs === undefined || grant.runId !== guard.runId || guard.quarantine) {
      this.send(); // only a reply shows the age of the vote, and the run that gave it
    } else {
      this.#acceptVote(voteByNotification(this.#host, grant, at, ageMs));
      this.#host.onReply(this);
    }
  }

  /** An earlier request of another client requests the vote with this number back. */
  voteRequestedBack(number: number): void {
    if (this.#voteYield.voteRequestedBack(number)) {
      this.yieldIfRequested();
    }
  }

  /** Yields a vote that was requested back, unless the attempt is elected. */
  yieldIfRequested(): void {
    if (
      this.vote === undefined ||
      !this.#voteYield.isRequestedBack(this.vote) ||
      !this.#host.isOpen ||
      this.#host.hasMajority
    ) {
      return;
    }
    this.#voteYield.begin();
    this.vote = undefined;
    this.reply = "asked";
    this.send();
  }

  /** An operator ended the grant. */
  invalidated(): void {
    this.vote = undefined;
    this.send();
  }

  failed(error: unknown): void {
    this.history.failed(error);
    this.#handleFailure(error);
  }

  #handleFailure(error: unknown): void {
    this.residue.requestFailed(error);
    this.isRaisingFence = false;
    if (this.#host.isOpen) {
      this.#noReply(error);
    }
  }

  #noReply(error: unknown): void {
    this.error = error;
    if (!this.hasValidVote) {
      this.reply = error instanceof EngineError ? "timeout" : "error";
      this.reason = messageOf(error);
      const quarantine =
        this.reply === "error" ? this.#host.nodeSet.requestQuarantineOf(this.node) : undefined;
      if (quarantine) {
        this.reply = "quarantined"; // a read-only replica refuses the request because it is no master
        this.reason = quarantineMessage(quarantine);
      }
    }
    this.#retryIn(backoffMs(this.#host.random, this.history.failures));
    this.#host.onReply(this);
  }

  #sendAfterHandshake(proposedFence: string): void {
    this.#sender.connect(
      () => {
        if (this.#host.isOpen) {
          this.#sender.send(this.#voteYield.number, proposedFence);
        }
      },
      (error) => {
        if (this.#host.isOpen && this.isPending) {
          this.#noReply(error);
        }
      },
    );
  }

  answered(reply: Reply, { yielded, requestNumber }: SentVoteRequest): void {
    const { value } = reply;
    const values = Array.isArray(value)
      ? (value as unknown[])
      : this.#host.operations.grantFrom(Number(value));
    if (Number(values[0]) !== acquireStatus.executedTooLate) {
      this.#voteYield.answered(yielded);
    }
    this.history.answered(reply.sameConnection);
    if (!this.#host.isOpen) {
      this.#handleLateReply(values, reply);
      return;
    }
    if (requestNumber <= this.#requestsBeforeCleanUp) {
      return;
    }
    this.latencyMs = this.#host.clock.now() - reply.sent.now;
    this.error = undefined;
    switch (values[0] === "error" ? "error" : Number(values[0])) {
      case "error":
        this.#handleFailure(serverRefusal(String(values[1])));
        return;
      case acquireStatus.held:
        this.#handleHeld(values, reply);
        break;
      case acquireStatus.granted:
        this.#acceptVote(voteByReply(this.#host, values, reply));
        break;
      case acquireStatus.queueFull:
        this.reply = "full";
        this.#retryIn(queuedPollDelay(this.#host.random, 0, -1, this.#host.ttlMs));
        break;
      case acquireStatus.deadWaitersRemain:
        this.send();
        return;
      case acquireStatus.executedTooLate:
        this.#handleExecutedTooLate();
        break;
      default:
        this.#handleFailure(serverRefusal("an unknown reply of the script"));
        return;
    }
    this.#host.onReply(this);
  }

  /** Records a vote. If the node is in quarantine for some time, the vote is cleaned up, so that the node can vote for another. */
  #acceptVote(vote: Vote): void {
    const quarantine = this.#host.nodeSet.lastingQuarantineOf(this.node, vote.reading);
    if (quarantine) {
      this.#cleanUpVote(quarantine);
    } else {
      this.record(vote);
    }
  }

  #cleanUpVote(quarantine: Quarantine): void {
    this.#requestsBeforeCleanUp = this.#sender.count;
    this.#host.cleanUp(this);
    this.#recordQuarantine(quarantine);
  }

  /** The next request to the node waits until the node may vote again. */
  #recordQuarantine(quarantine: Quarantine): void {
    this.vote = undefined;
    this.reply = "quarantined";
    this.reason = quarantineMessage(quarantine);
    this.#retryIn(quarantineRetryMs(quarantine));
  }

  /** Records the vote of the node. */
  record(vote: Vote): void {
    if (this.#voteYield.hasYielded(vote) || vote.first < (this.vote?.first ?? 0)) {
      return; // yielded, or older than the recorded vote
    }
    this.vote = vote;
    this.reply = "granted";
    this.reason = null;
    this.dueAt = nextRequestFor(vote, this.#host.clock);
    if (!this.quarantine) {
      this.#host.nodeSet.raiseProposal(vote.first);
    }
  }

  #handleHeld(values: readonly unknown[], reply: Reply): void {
    const [, remainingMs, position, holder, , first] = values;
    const { nodeSet, random } = this.#host;
    const reading = readingOf(reply.serverMicros, reply.sent.now, this.#host.clock.now());
    if (first !== null && first !== undefined && !nodeSet.quarantineOf(this.node, reading)) {
      nodeSet.raiseProposal(Number(first));
    }
    if (this.vote && this.vote.receivedAt > reply.sent.now) {
      return; // the request was sent before the vote arrived by notification, on another connection
    }
    this.vote = undefined;
    this.reply = "held";
    this.reason = null;
    this.holder = String(holder);
    this.residue.position = Number(position) >= 0 ? Number(position) : undefined;
    if (this.#host.waits) {
      this.#retryIn(this.#pollDelay(random, Number(remainingMs)));
    } else if (reply.sameConnection && this.history.outcome === "none" && !this.#voteYield.hasBegun) {
      this.residue.clear(); // the node has neither a grant nor, without a yield, a queue entry
    }
  }

  /** The node did nothing, because the request was late or one of the clocks is off. */
  #handleExecutedTooLate(): void {
    if (!this.vote) {
      this.reply = "timeout";
      this.reason = "the request reached the node too late, by the node's clock";
    }
    this.#retryIn(unqueuedPollDelay(this.#host.random, this.history.count, -1));
  }

  #pollDelay(random: Random, remainingMs: number): number {
    if (this.position !== undefined) {
      return Math.min(
        queuedPollDelay(random, this.position, remainingMs, this.#host.ttlMs),
        foreignPollDelay(random, this.position, this.holder, this.history.count),
      );
    }
    return this.mayQueue && !this.#sender.requestedQueueing
      ? 0 // notifications were verified after the request was sent
      : unqueuedPollDelay(random, this.history.count, remainingMs);
  }

  /**
   * The attempt has ended. Requests on different connections have no order, so a late request may have been granted or queued after
   * the clean-up.
   */
  #handleLateReply(values: readonly unknown[], reply: Reply): void {
    const status = Number(values[0]);
    if (status === acquireStatus.granted) {
      this.#host.handleLateReply(this, voteByReply(this.#host, values, reply));
    } else if (status === acquireStatus.held && Number(values[2]) >= 0) {
      this.#host.handleLateReply(this, undefined);
    }
  }

  #retryIn(delayMs: number): void {
    this.dueAt = this.#host.clock.now() + delayMs;
  }
}
