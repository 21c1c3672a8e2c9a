import { publish } from "../../../diagnostics.ts";
import type { AcquireResult, AcquireRequest, PendingAcquire } from "../../../driver.ts";
import { closedError, LockError } from "../../../errors.ts";
import { absent, type Indexed } from "../../../runtime/unordered-set.ts";
import { backoffMs } from "../../../runtime/random.ts";
import type { Scheduled } from "../../../runtime/timer-queue.ts";
import { waitTimedOut } from "../server/timed-out.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { MajorityAttempt, type MajorityAttemptListener, type MajorityGrant } from "./majority-attempt.ts";
import type { NodeSet } from "./node-set.ts";
import { withKey, quorumNotReached, refusalOf } from "./quorum-error.ts";
import type { QuorumHost } from "./request-host.ts";
import { SplitVoteTimer } from "./split-vote-timer.ts";
import { publishVote } from "./counted-votes.ts";
import { positionIn, outcomeOfTry } from "./majority-verdict.ts";

/**
 * One request for a lock on N nodes: its bid is repeated until it is elected, cancelled, or its time is over. A try asks once;
 * where the answers show that nobody has a majority, rivals tried at the same moment: it then waits its turn for one node timeout.
 */
export class QuorumRequest implements PendingAcquire, Indexed, Scheduled, MajorityAttemptListener {
  dueAt = 0;
  slot = -1;
  index: number = absent;
  readonly keys: LockKeys;
  readonly key: string;
  readonly ttlMs: number;
  /** When it stops waiting, on the scale of `clock.now()`. */
  deadline: number;
  /** The one that is under way. */
  attempt: MajorityAttempt | undefined;
  readonly result: Promise<AcquireResult>;
  readonly #host: QuorumHost;
  readonly #request: AcquireRequest;
  readonly #ignoresQueueLimit: boolean;
  /** In the queues. */
  #ticket: number | undefined;
  /** Of the nodes' time by which the place, and the deadline in the queues, are written. */
  #era: number | undefined;
  #isSettled = false;
  #isSettling = false;
  #hadReplies = false;
  #wasQueued = false;
  readonly #splitVoteTimer: SplitVoteTimer;
  #connectFailures = 0;
  #lastError: unknown;
  #resolve!: (acquired: AcquireResult) => void;
  #reject!: (reason: unknown) => void;

  /** @param ignoresQueueLimit the bound of the queues does not apply, because a grant is given up with this request */
  constructor(host: QuorumHost, request: AcquireRequest, keys: LockKeys, ignoresQueueLimit = false) {
    this.#host = host;
    this.#request = request;
    this.keys = keys;
    this.key = request.key;
    this.ttlMs = request.ttlMs;
    this.#ignoresQueueLimit = ignoresQueueLimit;
    this.#splitVoteTimer = new SplitVoteTimer(host, request.ttlMs);
    this.deadline = request.deadline ?? host.clock.now() + host.commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get #isTry(): boolean {
    return this.#request.deadline === null;
  }

  begin(): void {
    this.#host.timers.schedule(this, this.deadline);
    this.#start();
  }

  /** Most nodes have answered, or may still answer as they did before. */
  get hasReplies(): boolean {
    return this.attempt?.isAnswered(this.#hadReplies) ?? this.#hadReplies;
  }

  /** Its moment has come: the deadline, or to ask again. */
  wake(): void {
    const now = this.#host.clock.now();
    if (now >= this.deadline) {
      this.#timeOut();
    } else if (!this.attempt) {
      this.#host.timers.schedule(this, this.deadline);
      this.#start();
    } else {
      this.#retry(this.attempt, now);
    }
  }

  /** A node's messages reach us (again). */
  requestVote(index: number): void {
    const voteRequest = this.attempt?.voteRequests[index];
    if (voteRequest && !this.#isSettled && !this.#isTry) {
      voteRequest.send();
    }
  }

  /** A node may vote that might not. */
  recount(): void {
    this.attempt?.recount();
  }

  cancel(reason: unknown): void {
    if (!this.#isSettled) {
      this.#abandon();
      this.#reject(reason);
    }
  }

  close(): void {
    this.cancel(closedError(this.key));
  }

  elected(majorityGrant: MajorityGrant): void {
    const attempt = this.attempt as MajorityAttempt;
    this.#settle();
    const grant = this.#host.grants.elected(attempt, this, majorityGrant);
    publishVote(grant, majorityGrant, attempt);
    this.#resolve({ outcome: "granted", grant });
  }

  /** Another process has our tokens. */
  cloned(): void {
    if (this.attempt) {
      this.unresolved();
    }
  }

  /** With a fresh token. In the same place, unless the nodes' time is another than the one by which that was written. */
  unresolved(): void {
    this.#closeAttempt();
    this.#startAttempt();
  }

  onProgress(): void {
    if (this.#era !== this.#host.nodeSet.era) {
      this.unresolved();
    } else if (this.#isTry && !this.#isSettling) {
      this.#evaluateTry();
    } else {
      this.#waitForVotes();
    }
  }

  #start(): void {
    const { nodeSet } = this.#host;
    if (nodeSet.isReady) {
      this.#startAttempt();
      return;
    }
    nodeSet.ready().then(
      () => this.#startAttempt(),
      (error: unknown) => this.#connectFailed(error),
    );
  }

  /** With a fresh token: one that was given up is never asked for again. */
  #startAttempt(): void {
    if (this.#isSettled || this.attempt) {
      return;
    }
    const { nodeSet } = this.#host;
    try {
      nodeSet.assertDistinctNodes();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.attempt = new MajorityAttempt(this.#host, this, {
      acquireRequest: this.#request,
      token: this.#host.tokenFor(this.#request, this.#nextTicket(nodeSet)),
      ignoresQueueLimit: this.#ignoresQueueLimit,
    });
    this.attempt.waits ||= this.#isSettling;
    this.#host.grants.opened(this.attempt);
    this.attempt.requestAll();
  }

  #connectFailed(error: unknown): void {
    if (this.#isSettled) {
      return;
    }
    this.#lastError = error;
    if (error instanceof LockError && !error.retryable) {
      this.#fail(withKey(error, this.key));
      return;
    }
    this.#connectFailures += 1;
    this.#schedule(this.#host.clock.now() + backoffMs(this.#host.random, this.#connectFailures));
  }

  #retry(attempt: MajorityAttempt, now: number): void {
    if (now >= this.#splitVoteTimer.retryAt) {
      this.#splitVoteTimer.retried();
      if (this.#splitVoteTimer.isPauseDue && attempt.hasUnreachableVotes) {
        // Who cannot be asked gives its votes back by itself, and settles with its rivals by chance.
        const pauseMs = this.#splitVoteTimer.pauseMs;
        this.#closeAttempt();
        this.#schedule(now + pauseMs);
        return;
      }
      attempt.requestAll();
    } else {
      attempt.requestDue();
    }
    this.#waitForVotes();
  }

  /** Fresh tokens of one request keep its place in one era. */
  #nextTicket(nodeSet: NodeSet): number {
    const { era } = nodeSet;
    if (this.#ticket === undefined) {
      this.#ticket = this.#request.ticket ?? nodeSet.ticket();
    } else if (era !== this.#era) {
      this.#ticket = nodeSet.ticket();
    }
    this.#era = era;
    return this.#ticket;
  }

  /** Not elected: goes on waiting for answers and messages, unless the nodes say that it is in vain. */
  #waitForVotes(): void {
    const attempt = this.attempt;
    if (!attempt || this.#isSettled) {
      return;
    }
    if (attempt.isUncontested || !this.#endsUnused(attempt)) {
      this.#splitVoteTimer.observe(attempt.isSplitVote);
      this.#schedule(Math.min(attempt.dueAt, this.#splitVoteTimer.retryAt));
    }
  }

  /** Whether what the nodes have said ends this bid. */
  #endsUnused(attempt: MajorityAttempt): boolean {
    const { voteRequests } = attempt;
    if (this.#isSettling && outcomeOfTry(voteRequests, attempt.nodeSet.majority) === "held") {
      this.#finishTry();
      return true;
    }
    const refusal = refusalOf(attempt, this.key);
    if (refusal !== undefined) {
      this.#fail(refusal);
      return true;
    }
    if (!this.#wasQueued && voteRequests.some(({ position }) => position !== undefined)) {
      this.#wasQueued = true;
      publish("queued", () => ({ key: this.key, position: positionIn(voteRequests) }));
    }
    return false;
  }

  #evaluateTry(): void {
    const attempt = this.attempt as MajorityAttempt;
    switch (outcomeOfTry(attempt.voteRequests, this.#host.nodeSet.majority)) {
      case "held":
        this.#finishTry();
        break;
      case "split":
        this.#settleTry();
        break;
      case "unanswered":
        this.#fail(refusalOf(attempt, this.key) ?? this.#failure());
        break;
      case "open":
    }
  }

  /** Nobody has a majority: the rivals are settled by their places, as if they had waited. */
  #settleTry(): void {
    const { clock, nodeTimeoutMs } = this.#host;
    const attempt = this.attempt as MajorityAttempt;
    this.#isSettling = true;
    this.deadline = Math.min(this.deadline, clock.now() + nodeTimeoutMs);
    attempt.waits = true;
    attempt.requestAll();
    this.#waitForVotes();
  }

  #finishTry(): void {
    this.#abandon();
    this.#resolve({ outcome: "held" });
  }

  #timeOut(): void {
    if (this.#isSettling) {
      this.#finishTry();
    } else if (!this.hasReplies || this.#isTry) {
      this.#fail(this.#failure());
    } else {
      const position = positionIn(this.attempt?.voteRequests ?? []);
      this.#abandon();
      void waitTimedOut(this.#host, this.#request, position).then(this.#resolve);
    }
  }

  #failure(): unknown {
    const { attempt } = this;
    return attempt || this.#lastError === undefined
      ? quorumNotReached(this.#host.nodeSet, this.key, attempt)
      : withKey(this.#lastError, this.key);
  }

  #schedule(at: number): void {
    this.#host.timers.schedule(this, Math.min(at, this.deadline));
  }

  #fail(error: unknown): void {
    this.#abandon();
    this.#reject(error);
  }

  /** Gives up: what the nodes may have of it is taken back. */
  #abandon(): void {
    this.#settle();
    this.#closeAttempt();
  }

  #closeAttempt(): void {
    const { attempt } = this;
    if (attempt) {
      this.#hadReplies = this.hasReplies;
      attempt.close();
      this.#host.grants.abandoned(attempt);
      this.attempt = undefined;
    }
  }

  #settle(): void {
    this.#isSettled = true;
    this.#host.timers.cancel(this);
    this.#host.settled(this);
  }
}
