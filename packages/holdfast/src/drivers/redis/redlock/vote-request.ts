import type { Timer } from "../../../runtime/clock.ts";
import { EngineError, type NodeVote } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { remainingValidityMs } from "../../../validity.ts";
import { RequestHistory } from "../server/request-history.ts";
import { messageOf, outcomeOf, serverRefusal, unresponsiveError } from "../server/errors.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Reply } from "../protocol/operation.ts";
import { unqueuedPollDelay, queuedPollDelay } from "../server/poll-delays.ts";
import type { VoteRequestHost } from "./vote-request-host.ts";
import { readingOf } from "./clock-reading.ts";
import { VoteOperation, type VoteOperationDetails } from "./vote-call.ts";
import { exclusionMs, quarantineMessage, type Quarantine } from "./restart-guard.ts";
import { voteByNotification, voteByReply, type Vote } from "./vote.ts";
import type { QuorumNode } from "./quorum-node.ts";
import { VoteYield } from "./vote-yield.ts";

/** How soon a vote that waits is asked for again, at the earliest. */
const minRetryMs = 20;

/** How the script says that it did nothing because its latest time is over. */
const executedTooLate = 4;

type VoteReply = NodeVote["vote"] | "asked" | "full";

/** What one node says to one bid. Knows that node's answers, messages and inquiries, and not what they come to. */
export class VoteRequest {
  readonly node: QuorumNode;
  readonly history: RequestHistory = new RequestHistory();
  vote: Vote | undefined;
  reply: VoteReply = "asked";
  reason: string | null = null;
  latencyMs: number | null = null;
  error: unknown;
  /** Who has the node's vote instead of us, as it last said, and for how long. */
  holder = "";
  position: number | undefined;
  /** When to ask again if nothing is heard before, on the scale of `clock.now()`. */
  dueAt: number = Infinity;
  /** It was asked to raise its number, and has not answered yet. */
  isRaisingFence = false;
  readonly #host: VoteRequestHost;
  readonly #voteYield: VoteYield = new VoteYield();
  #requestedQueueing = false;
  /** Questions that may have left something on the node. */
  #unconfirmed = 0;
  /** How many questions it was asked, and how many of them before a vote was given back: that ends what those have brought. */
  #requestCount = 0;
  #requestsBeforeCleanUp = 0;

  constructor(host: VoteRequestHost, node: QuorumNode) {
    this.#host = host;
    this.node = node;
  }

  /** Whether anything of us may be there. */
  get mayHoldResidue(): boolean {
    return this.#unconfirmed > 0;
  }

  /** Something of us was put there, past this ballot. */
  noteResidue(): void {
    this.#unconfirmed += 1;
  }

  /** Whether the node may have kept us a place in its queue. */
  get mayBeQueued(): boolean {
    return this.position !== undefined || this.isUnanswered || this.isPending;
  }

  /** Whether the last question got no answer. */
  get isUnanswered(): boolean {
    return this.history.failures > 0;
  }

  /** An answer is still to come. */
  get isPending(): boolean {
    return this.reply === "asked";
  }

  /** What the node said of the lock counts: ours, or another's. */
  get hasReplied(): boolean {
    return this.reply === "held" || this.reply === "full" || (this.reply === "granted" && !this.quarantine);
  }

  get hasValidVote(): boolean {
    return this.vote !== undefined && remainingValidityMs(this.vote.validity, this.#host.clock) > 0;
  }

  /** Its vote counts later: somebody who had it before may believe in a lease still. */
  get isWaiting(): boolean {
    return this.vote !== undefined && this.#host.clock.now() < this.vote.countsFrom;
  }

  /** Why its vote does not count; undefined: it does. */
  get quarantine(): Quarantine | undefined {
    return this.#host.nodeSet.quarantineOf(this.node, this.vote?.reading);
  }

  /** Whether its vote counts now: the node has not restarted since, and its clock was right. */
  get countsNow(): boolean {
    return (
      this.hasValidVote && !this.isWaiting && this.vote?.runId === this.node.guard.runId && !this.quarantine
    );
  }

  /** Its moment has come. */
  wake(proposedFence: string): void {
    if (this.vote && this.hasValidVote && !this.isWaiting) {
      this.dueAt = Infinity;
      this.#host.onReply(this); // it counts from now on
    } else {
      this.send(proposedFence);
    }
  }

  /** Asks for the vote, or asks again: the place in the queue stays, and so does a vote. */
  send(proposedFence: string = this.#host.nodeSet.nextProposal()): void {
    this.dueAt = Infinity;
    this.history.count += 1;
    if (!this.node.isReady) {
      this.#sendAfterHandshake(proposedFence);
      return;
    }
    const quarantine = this.#host.nodeSet.ineligibility(this.node);
    if (!quarantine) {
      this.#sendNow(proposedFence);
      return;
    }
    this.#exclude(quarantine);
    queueMicrotask(() => this.#host.onReply(this));
  }

  /** Whether a place in this node's queue may be asked for: its messages about this bid reach us. */
  get mayQueue(): boolean {
    return this.node.server.notificationStatus === "verified";
  }

  /** A message says that the node's vote is ours. */
  granted(grant: PushedGrant): void {
    const { nodeSet } = this.#host;
    const { server, guard } = this.node;
    const refusal = nodeSet.ineligibility(this.node);
    const ageMs = server.grantAges.ageOf(grant.runId, grant.serverMicros);
    if (refusal) {
      this.#cleanUpVote(refusal);
    } else if (ageMs === undefined || grant.runId !== guard.runId || guard.quarantine) {
      this.send(); // the reply dates it, and says whose it is
    } else {
      this.#acceptVote(voteByNotification(this.#host, grant, ageMs));
      this.#host.onReply(this);
    }
  }

  /** A rival that came earlier asks the vote with this number back. */
  voteRequestedBack(number: number): void {
    if (this.#voteYield.voteRequestedBack(number)) {
      this.yieldIfRequested();
    }
  }

  /** Gives the vote back that was asked for, unless we have won already. */
  yieldIfRequested(): void {
    if (
      this.vote === undefined ||
      !this.#voteYield.isRequestedBack(this.vote) ||
      !this.#host.isOpen ||
      this.#host.isElected
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
    this.history.failures += 1;
    this.isRaisingFence = false;
    if (this.#unconfirmed > 0 && outcomeOf(error) === "none") {
      this.#unconfirmed -= 1;
    }
    if (this.#host.isOpen) {
      this.#noReply(error);
    }
  }

  #noReply(error: unknown): void {
    this.error = error;
    if (!this.hasValidVote) {
      this.reply = error instanceof EngineError ? "timeout" : "error";
      this.reason = messageOf(error);
      const quarantine = this.reply === "error" ? this.#host.nodeSet.ineligibility(this.node) : undefined;
      if (quarantine) {
        this.reply = "quarantined"; // a read-only replica refuses what it may not do anyway
        this.reason = quarantineMessage(quarantine);
      }
    }
    this.#retryIn(backoffMs(this.#host.random, this.history.failures));
    this.#host.onReply(this);
  }

  /** Nobody waits for a node that was never reached, longer than for another. */
  #sendAfterHandshake(proposedFence: string): void {
    const { clock, nodeTimeoutMs } = this.#host;
    const handshakeFailed = (error: unknown): void => {
      clock.clearTimer(timer);
      if (this.#host.isOpen && this.isPending) {
        this.#noReply(error);
      }
    };
    const timer: Timer = clock.setTimer(() => handshakeFailed(unresponsiveError()), nodeTimeoutMs);
    this.node.handshake().then(() => {
      clock.clearTimer(timer);
      if (this.#host.isOpen) {
        this.#sendNow(proposedFence);
      }
    }, handshakeFailed);
  }

  #sendNow(proposedFence: string): void {
    this.#requestedQueueing = this.#host.waits && this.mayQueue;
    this.node.releaseQueue.cancelCleanUp(this.#host.token); // the node did not vote meanwhile: what was to be given back is asked for again
    const { keys, operations } = this.#host;
    const yielded = this.#voteYield.number;
    const args =
      yielded > 0
        ? operations.yield(this, yielded, proposedFence)
        : operations.request(this, proposedFence, this.#requestedQueueing);
    this.history.sent(Number(args.at(-1)));
    this.noteResidue();
    this.#requestCount += 1;
    this.node.server.perform(
      new VoteOperation(this, keys, args, { yielded, requestNumber: this.#requestCount }),
    );
  }

  answered(reply: Reply, { yielded, requestNumber }: VoteOperationDetails): void {
    const { value } = reply;
    const values = Array.isArray(value)
      ? (value as unknown[])
      : this.#host.operations.grantFrom(Number(value));
    if (Number(values[0]) !== executedTooLate) {
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
      case 0:
        this.#handleHeld(values, reply);
        break;
      case 1:
        this.#grantedByReply(values, reply);
        break;
      case 2:
        this.reply = "full";
        this.#retryIn(queuedPollDelay(this.#host.random, 0, -1, this.#host.ttlMs));
        break;
      case 3:
        this.send(); // dead waiters are left before us
        return;
      case executedTooLate:
        this.#handleExecutedTooLate();
        break;
      default:
        this.#handleFailure(serverRefusal("an answer that is none of ours"));
        return;
    }
    this.#host.onReply(this);
  }

  #grantedByReply(values: readonly unknown[], reply: Reply): void {
    this.#acceptVote(voteByReply(this.#host, values, reply));
  }

  /** What does not count must not keep out those for whom it may. */
  #acceptVote(vote: Vote): void {
    const exclusion = this.#host.nodeSet.exclusionOf(this.node, vote.reading);
    if (exclusion) {
      this.#cleanUpVote(exclusion);
    } else {
      this.count(vote);
    }
  }

  #cleanUpVote(quarantine: Quarantine): void {
    this.#requestsBeforeCleanUp = this.#requestCount;
    this.#host.cleanUp(this);
    this.#exclude(quarantine);
  }

  /** It is not asked before it may vote again. */
  #exclude(quarantine: Quarantine): void {
    this.vote = undefined;
    this.reply = "quarantined";
    this.reason = quarantineMessage(quarantine);
    this.#retryIn(exclusionMs(quarantine));
  }

  /** The node's vote is ours. */
  count(vote: Vote): void {
    if (this.#voteYield.hasYielded(vote) || vote.first < (this.vote?.first ?? 0)) {
      return; // given back, or told before what we know
    }
    this.vote = vote;
    this.reply = "granted";
    this.reason = null;
    this.dueAt = this.#retryTime(vote);
    if (!this.quarantine) {
      this.#host.nodeSet.raiseProposal(vote.first);
    }
  }

  /** A vote that waits is asked for again before it is over. */
  #retryTime({ countsFrom, validity, receivedAt }: Vote): number {
    const halfMs = remainingValidityMs(validity, this.#host.clock) / 2;
    return countsFrom > receivedAt
      ? Math.min(countsFrom, receivedAt + Math.max(halfMs, minRetryMs))
      : Infinity;
  }

  #handleHeld(values: readonly unknown[], reply: Reply): void {
    const [, remainingMs, position, holder, , first] = values;
    const { nodeSet, random } = this.#host;
    const reading = readingOf(reply.serverMicros, reply.sent.now, this.#host.clock.now());
    if (first !== null && first !== undefined && !nodeSet.quarantineOf(this.node, reading)) {
      nodeSet.raiseProposal(Number(first));
    }
    if (this.vote && this.vote.receivedAt > reply.sent.now) {
      return; // messages and answers come by different connections: it was asked before we had the vote
    }
    this.vote = undefined;
    this.reply = "held";
    this.reason = null;
    this.holder = String(holder);
    this.position = Number(position) >= 0 ? Number(position) : undefined;
    if (this.#host.waits) {
      this.#retryIn(this.#pollDelay(random, Number(remainingMs)));
    } else if (reply.sameConnection && this.history.outcome === "none" && !this.#voteYield.hasBegun) {
      this.#unconfirmed = 0; // nothing of us is there; who yields is queued, also of a try
    }
  }

  /** The node did nothing: the question was long on its way, or one of the clocks is off. */
  #handleExecutedTooLate(): void {
    if (!this.vote) {
      this.reply = "timeout";
      this.reason = "it was asked too late, by its clock";
    }
    this.#retryIn(unqueuedPollDelay(this.#host.random, this.history.count, -1));
  }

  #pollDelay(random: Random, remainingMs: number): number {
    if (this.position !== undefined) {
      return queuedPollDelay(random, this.position, remainingMs, this.#host.ttlMs);
    }
    return this.mayQueue && !this.#requestedQueueing
      ? 0 // proved since we asked: now we may queue
      : unqueuedPollDelay(random, this.history.count, remainingMs);
  }

  /** Order holds only within one connection and one script: a late answer may have queued us or voted for us once more. */
  #handleLateReply(values: readonly unknown[], reply: Reply): void {
    const status = Number(values[0]);
    if (status === 1) {
      this.#host.handleLateReply(this, voteByReply(this.#host, values, reply));
    } else if (status === 0 && Number(values[2]) >= 0) {
      this.#host.handleLateReply(this, undefined);
    }
  }

  #retryIn(delayMs: number): void {
    this.dueAt = this.#host.clock.now() + delayMs;
  }
}
