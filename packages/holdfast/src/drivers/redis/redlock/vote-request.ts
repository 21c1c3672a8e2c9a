import { EngineError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import type { RequestHistory } from "../server/request-history.ts";
import { messageOf, serverRefusal } from "../server/errors.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Reply } from "../protocol/operation.ts";
import { unqueuedPollDelay, queuedPollDelay } from "../server/poll-delays.ts";
import type { VoteRequestHost } from "./vote-request-host.ts";
import { VoteState } from "./vote-state.ts";
import { readingOf } from "./clock-reading.ts";
import { VoteSender, type SentVoteRequest } from "./vote-sender.ts";
import { exclusionMs, quarantineMessage, type Quarantine } from "./restart-guard.ts";
import { nextRequestFor, voteByNotification, voteByReply, type Vote } from "./vote.ts";
import type { QuorumNode } from "./quorum-node.ts";
import { VoteYield } from "./vote-yield.ts";

/** How the script says that it did nothing because its latest time is over. */
const executedTooLate = 4;

/** What one node says to one bid. Knows that node's answers, messages and inquiries, and not what they come to. */
export class VoteRequest extends VoteState {
  /** When to send the next request if no reply or notification arrives before, on the scale of `clock.now()`. */
  dueAt: number = Infinity;
  /** The node was requested to raise its fencing number, and has not replied yet. */
  isRaisingFence = false;
  readonly #host: VoteRequestHost<VoteRequest>;
  readonly #voteYield: VoteYield = new VoteYield();
  readonly #sender: VoteSender;
  /** The requests before the last clean-up: the clean-up ends whatever these requests brought. */
  #requestsBeforeCleanUp = 0;

  constructor(host: VoteRequestHost<VoteRequest>, node: QuorumNode) {
    super(host, node);
    this.#host = host;
    this.#sender = new VoteSender(host, this, this);
  }

  get history(): RequestHistory {
    return this.residue.history;
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
      const quarantine = this.reply === "error" ? this.#host.nodeSet.ineligibility(this.node) : undefined;
      if (quarantine) {
        this.reply = "quarantined"; // a read-only replica refuses what it may not do anyway
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
          this.#sendNow(proposedFence);
        }
      },
      (error) => {
        if (this.#host.isOpen && this.isPending) {
          this.#noReply(error);
        }
      },
    );
  }

  #sendNow(proposedFence: string): void {
    this.#sender.send(this.#voteYield.number, proposedFence);
  }

  answered(reply: Reply, { yielded, requestNumber }: SentVoteRequest): void {
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
    this.#requestsBeforeCleanUp = this.#sender.count;
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
      return; // messages and answers come by different connections: it was asked before we had the vote
    }
    this.vote = undefined;
    this.reply = "held";
    this.reason = null;
    this.holder = String(holder);
    this.residue.position = Number(position) >= 0 ? Number(position) : undefined;
    if (this.#host.waits) {
      this.#retryIn(this.#pollDelay(random, Number(remainingMs)));
    } else if (reply.sameConnection && this.history.outcome === "none" && !this.#voteYield.hasBegun) {
      this.residue.clear(); // nothing of us is there; who yields is queued, also of a try
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
    return this.mayQueue && !this.#sender.requestedQueueing
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
