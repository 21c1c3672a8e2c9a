import type { Timer } from "../../../runtime/clock.ts";
import { EngineError, type NodeVote } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { leftOf } from "../../../validity.ts";
import { Attempts } from "../server/request-history.ts";
import { messageOf, outcomeOf, refusalBy, silentError } from "../server/errors.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Reply } from "../protocol/operation.ts";
import { impatientDelay, pollDelay } from "../server/poll-delays.ts";
import type { Bidder } from "./vote-request-host.ts";
import { readingOf } from "./clock-reading.ts";
import { Question, type Asked } from "./vote-call.ts";
import { exclusionDelay, quarantineWords, type Quarantine } from "./restart-guard.ts";
import { voteByMessage, voteByReply, type Vote } from "./vote.ts";
import type { Voter } from "./quorum-node.ts";
import { Yielding } from "./vote-yield.ts";

/** How soon a vote that waits is asked for again, at the earliest. */
const shortestMs = 20;

/** How the script says that it did nothing because its latest time is over. */
const tooLate = 4;

type Answer = NodeVote["vote"] | "asked" | "full";

/** What one node says to one bid. Knows that node's answers, messages and inquiries, and not what they come to. */
export class Ballot {
  readonly voter: Voter;
  readonly attempts: Attempts = new Attempts();
  vote: Vote | undefined;
  answer: Answer = "asked";
  reason: string | null = null;
  latencyMs: number | null = null;
  error: unknown;
  /** Who has the node's vote instead of us, as it last said, and for how long. */
  holder = "";
  position: number | undefined;
  /** When to ask again if nothing is heard before, on the scale of `clock.now()`. */
  dueAt: number = Infinity;
  /** It was asked to raise its number, and has not answered yet. */
  isAgreeing = false;
  readonly #bid: Bidder;
  readonly #yielding: Yielding = new Yielding();
  #askedForPlace = false;
  /** Questions that may have left something on the node. */
  #sent = 0;
  /** How many questions it was asked, and how many of them before a vote was given back: that ends what those have brought. */
  #asks = 0;
  #asksBefore = 0;

  constructor(bid: Bidder, voter: Voter) {
    this.#bid = bid;
    this.voter = voter;
  }

  /** Whether anything of us may be there. */
  get mayHaveLeft(): boolean {
    return this.#sent > 0;
  }

  /** Something of us was put there, past this ballot. */
  left(): void {
    this.#sent += 1;
  }

  /** Whether the node may have kept us a place in its queue. */
  get mayBeQueued(): boolean {
    return this.position !== undefined || this.isUnanswered || this.isPending;
  }

  /** Whether the last question got no answer. */
  get isUnanswered(): boolean {
    return this.attempts.failures > 0;
  }

  /** An answer is still to come. */
  get isPending(): boolean {
    return this.answer === "asked";
  }

  /** What the node said of the lock counts: ours, or another's. */
  get hasAnswered(): boolean {
    return (
      this.answer === "held" || this.answer === "full" || (this.answer === "granted" && !this.quarantine)
    );
  }

  get hasValidVote(): boolean {
    return this.vote !== undefined && leftOf(this.vote.validity, this.#bid.clock) > 0;
  }

  /** Its vote counts later: somebody who had it before may believe in a lease still. */
  get isWaiting(): boolean {
    return this.vote !== undefined && this.#bid.clock.now() < this.vote.countsFrom;
  }

  /** Why its vote does not count; undefined: it does. */
  get quarantine(): Quarantine | undefined {
    return this.#bid.electorate.quarantineOf(this.voter, this.vote?.reading);
  }

  /** Whether its vote counts now: the node has not restarted since, and its clock was right. */
  get isOurs(): boolean {
    return (
      this.hasValidVote && !this.isWaiting && this.vote?.runId === this.voter.guard.runId && !this.quarantine
    );
  }

  /** Its moment has come. */
  wake(candidate: string): void {
    if (this.vote && this.hasValidVote && !this.isWaiting) {
      this.dueAt = Infinity;
      this.#bid.heard(this); // it counts from now on
    } else {
      this.ask(candidate);
    }
  }

  /** Asks for the vote, or asks again: the place in the queue stays, and so does a vote. */
  ask(candidate: string = this.#bid.electorate.candidate()): void {
    this.dueAt = Infinity;
    this.attempts.count += 1;
    if (!this.voter.isReady) {
      this.#askWhenMet(candidate);
      return;
    }
    const quarantine = this.#bid.electorate.whyNotAsked(this.voter);
    if (!quarantine) {
      this.#send(candidate);
      return;
    }
    this.#exclude(quarantine);
    queueMicrotask(() => this.#bid.heard(this));
  }

  /** Whether a place in this node's queue may be asked for: its messages about this bid reach us. */
  get mayQueue(): boolean {
    return this.voter.node.hearing === "proved";
  }

  /** A message says that the node's vote is ours. */
  granted(grant: PushedGrant): void {
    const { electorate } = this.#bid;
    const { node, guard } = this.voter;
    const refusal = electorate.whyNotAsked(this.voter);
    const ageMs = node.brackets.ageOf(grant.runId, grant.serverMicros);
    if (refusal) {
      this.#giveBack(refusal);
    } else if (ageMs === undefined || grant.runId !== guard.runId || guard.quarantine) {
      this.ask(); // the reply dates it, and says whose it is
    } else {
      this.#take(voteByMessage(this.#bid, grant, ageMs));
      this.#bid.heard(this);
    }
  }

  /** A rival that came earlier asks the vote with this number back. */
  inquired(number: number): void {
    if (this.#yielding.inquired(number)) {
      this.yieldIfAsked();
    }
  }

  /** Gives the vote back that was asked for, unless we have won already. */
  yieldIfAsked(): void {
    if (
      this.vote === undefined ||
      !this.#yielding.isAskedFor(this.vote) ||
      !this.#bid.isOpen ||
      this.#bid.isElected
    ) {
      return;
    }
    this.#yielding.begin();
    this.vote = undefined;
    this.answer = "asked";
    this.ask();
  }

  /** An operator ended the grant. */
  broken(): void {
    this.vote = undefined;
    this.ask();
  }

  failed(error: unknown): void {
    this.attempts.failed(error);
    this.#failed(error);
  }

  #failed(error: unknown): void {
    this.attempts.failures += 1;
    this.isAgreeing = false;
    if (this.#sent > 0 && outcomeOf(error) === "none") {
      this.#sent -= 1;
    }
    if (this.#bid.isOpen) {
      this.#unheard(error);
    }
  }

  #unheard(error: unknown): void {
    this.error = error;
    if (!this.hasValidVote) {
      this.answer = error instanceof EngineError ? "timeout" : "error";
      this.reason = messageOf(error);
      const quarantine = this.answer === "error" ? this.#bid.electorate.whyNotAsked(this.voter) : undefined;
      if (quarantine) {
        this.answer = "quarantined"; // a read-only replica refuses what it may not do anyway
        this.reason = quarantineWords(quarantine);
      }
    }
    this.#askAgainIn(backoffMs(this.#bid.random, this.attempts.failures));
    this.#bid.heard(this);
  }

  /** Nobody waits for a node that was never reached, longer than for another. */
  #askWhenMet(candidate: string): void {
    const { clock, nodeTimeoutMs } = this.#bid;
    const notMet = (error: unknown): void => {
      clock.clearTimer(timer);
      if (this.#bid.isOpen && this.isPending) {
        this.#unheard(error);
      }
    };
    const timer: Timer = clock.setTimer(() => notMet(silentError()), nodeTimeoutMs);
    this.voter.meet().then(() => {
      clock.clearTimer(timer);
      if (this.#bid.isOpen) {
        this.#send(candidate);
      }
    }, notMet);
  }

  #send(candidate: string): void {
    this.#askedForPlace = this.#bid.waits && this.mayQueue;
    this.voter.releaser.keep(this.#bid.token); // the node did not vote meanwhile: what was to be given back is asked for again
    const { keys, wording } = this.#bid;
    const yielded = this.#yielding.number;
    const args =
      yielded > 0
        ? wording.yielding(this, yielded, candidate)
        : wording.request(this, candidate, this.#askedForPlace);
    this.attempts.sent(Number(args.at(-1)));
    this.left();
    this.#asks += 1;
    this.voter.node.perform(new Question(this, keys, args, { yielded, ask: this.#asks }));
  }

  answered(reply: Reply, { yielded, ask }: Asked): void {
    const { value } = reply;
    const answer = Array.isArray(value) ? (value as unknown[]) : this.#bid.wording.grantFrom(Number(value));
    if (Number(answer[0]) !== tooLate) {
      this.#yielding.answered(yielded);
    }
    this.attempts.answered(reply.isSteady);
    if (!this.#bid.isOpen) {
      this.#answeredTooLate(answer, reply);
      return;
    }
    if (ask <= this.#asksBefore) {
      return;
    }
    this.latencyMs = this.#bid.clock.now() - reply.sent.now;
    this.error = undefined;
    switch (answer[0] === "error" ? "error" : Number(answer[0])) {
      case "error":
        this.#failed(refusalBy(String(answer[1])));
        return;
      case 0:
        this.#held(answer, reply);
        break;
      case 1:
        this.#grantedByReply(answer, reply);
        break;
      case 2:
        this.answer = "full";
        this.#askAgainIn(pollDelay(this.#bid.random, 0, -1, this.#bid.ttlMs));
        break;
      case 3:
        this.ask(); // dead waiters are left before us
        return;
      case tooLate:
        this.#executedTooLate();
        break;
      default:
        this.#failed(refusalBy("an answer that is none of ours"));
        return;
    }
    this.#bid.heard(this);
  }

  #grantedByReply(answer: readonly unknown[], reply: Reply): void {
    this.#take(voteByReply(this.#bid, answer, reply));
  }

  /** What does not count must not keep out those for whom it may. */
  #take(vote: Vote): void {
    const exclusion = this.#bid.electorate.exclusionOf(this.voter, vote.reading);
    if (exclusion) {
      this.#giveBack(exclusion);
    } else {
      this.count(vote);
    }
  }

  #giveBack(quarantine: Quarantine): void {
    this.#asksBefore = this.#asks;
    this.#bid.giveBack(this);
    this.#exclude(quarantine);
  }

  /** It is not asked before it may vote again. */
  #exclude(quarantine: Quarantine): void {
    this.vote = undefined;
    this.answer = "quarantined";
    this.reason = quarantineWords(quarantine);
    this.#askAgainIn(exclusionDelay(quarantine));
  }

  /** The node's vote is ours. */
  count(vote: Vote): void {
    if (this.#yielding.hasGivenBack(vote) || vote.first < (this.vote?.first ?? 0)) {
      return; // given back, or told before what we know
    }
    this.vote = vote;
    this.answer = "granted";
    this.reason = null;
    this.dueAt = this.#isDueAgainAt(vote);
    if (!this.quarantine) {
      this.#bid.electorate.follow(vote.first);
    }
  }

  /** A vote that waits is asked for again before it is over. */
  #isDueAgainAt({ countsFrom, validity, heardAt }: Vote): number {
    const halfMs = leftOf(validity, this.#bid.clock) / 2;
    return countsFrom > heardAt ? Math.min(countsFrom, heardAt + Math.max(halfMs, shortestMs)) : Infinity;
  }

  #held(answer: readonly unknown[], reply: Reply): void {
    const [, remainingMs, position, holder, , first] = answer;
    const { electorate, random } = this.#bid;
    const reading = readingOf(reply.serverMicros, reply.sent.now, this.#bid.clock.now());
    if (first !== null && first !== undefined && !electorate.quarantineOf(this.voter, reading)) {
      electorate.follow(Number(first));
    }
    if (this.vote && this.vote.heardAt > reply.sent.now) {
      return; // messages and answers come by different connections: it was asked before we had the vote
    }
    this.vote = undefined;
    this.answer = "held";
    this.reason = null;
    this.holder = String(holder);
    this.position = Number(position) >= 0 ? Number(position) : undefined;
    if (this.#bid.waits) {
      this.#askAgainIn(this.#pollDelay(random, Number(remainingMs)));
    } else if (reply.isSteady && this.attempts.outcome === "none" && !this.#yielding.hasBegun) {
      this.#sent = 0; // nothing of us is there; who yields is queued, also of a try
    }
  }

  /** The node did nothing: the question was long on its way, or one of the clocks is off. */
  #executedTooLate(): void {
    if (!this.vote) {
      this.answer = "timeout";
      this.reason = "it was asked too late, by its clock";
    }
    this.#askAgainIn(impatientDelay(this.#bid.random, this.attempts.count, -1));
  }

  #pollDelay(random: Random, remainingMs: number): number {
    if (this.position !== undefined) {
      return pollDelay(random, this.position, remainingMs, this.#bid.ttlMs);
    }
    return this.mayQueue && !this.#askedForPlace
      ? 0 // proved since we asked: now we may queue
      : impatientDelay(random, this.attempts.count, remainingMs);
  }

  /** Order holds only within one connection and one script: a late answer may have queued us or voted for us once more. */
  #answeredTooLate(answer: readonly unknown[], reply: Reply): void {
    const status = Number(answer[0]);
    if (status === 1) {
      this.#bid.heardTooLate(this, voteByReply(this.#bid, answer, reply));
    } else if (status === 0 && Number(answer[2]) >= 0) {
      this.#bid.heardTooLate(this, undefined);
    }
  }

  #askAgainIn(delayMs: number): void {
    this.dueAt = this.#bid.clock.now() + delayMs;
  }
}
