import type { AcquireRequest, AcquireResult, PendingAcquire } from "../../../driver.ts";
import type { Holder } from "../../../lock-state.ts";
import type { Scheduled, TimerQueue } from "../../../runtime/timer-queue.ts";
import type { GrantRegistry } from "./grant-registry.ts";
import type {
  MajorityAttempt,
  MajorityAttemptHost,
  MajorityAttemptListener,
  MajorityGrant,
} from "./majority-attempt.ts";
import { closedError } from "../../../errors.ts";
import { absent, type Indexed } from "../../../runtime/unordered-set.ts";
import { AttemptSeries } from "./attempt-series.ts";
import { waitTimedOut } from "../server/errors.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { quorumNotReached, refusalOf, withKey } from "./quorum-error.ts";
import { SplitVoteTimer } from "./split-vote-timer.ts";
import { publishVote } from "./vote.ts";
import { outcomeOfTry, positionIn } from "./majority.ts";

/**
 * The driver of a request.
 * @typeParam Request - the class of the requests
 */
export interface QuorumHost<Request extends Scheduled> extends MajorityAttemptHost {
  readonly timers: TimerQueue<Request>;
  readonly commandTimeoutMs: number;
  readonly grants: GrantRegistry;
  /** Creates a token for an attempt. */
  tokenFor(request: AcquireRequest, ticket: number): string;
  settled(request: Request): void;
  holderOf(key: string): Promise<Holder | undefined>;
}

/**
 * One request for a lock on N nodes. Its majority attempts are repeated until one is elected, the request is cancelled, or its deadline
 * passes. A try has one attempt. If no attempt has a majority, because several tries were made at the same moment, the try waits in
 * the queues for `nodeTimeoutMs`.
 */
export class QuorumRequest implements PendingAcquire, Indexed, Scheduled, MajorityAttemptListener {
  dueAt = 0;
  slot = -1;
  index: number = absent;
  readonly keys: LockKeys;
  readonly key: string;
  readonly ttlMs: number;
  /** When the request stops waiting, on the scale of `clock.now()`. */
  deadline: number;
  readonly result: Promise<AcquireResult>;
  readonly #host: QuorumHost<QuorumRequest>;
  readonly #request: AcquireRequest;
  readonly #attempts: AttemptSeries<QuorumRequest>;
  #isSettled = false;
  /** A try that waits for its turn, because no try has a majority. */
  isBreakingTie = false;
  #wasQueued = false;
  readonly #splitVoteTimer: SplitVoteTimer;
  #resolve!: (acquired: AcquireResult) => void;
  #reject!: (reason: unknown) => void;

  /** @param ignoresQueueLimit the limit of the queues does not apply, because the caller releases a grant in the same call */
  constructor(
    host: QuorumHost<QuorumRequest>,
    request: AcquireRequest,
    keys: LockKeys,
    ignoresQueueLimit = false,
  ) {
    this.#host = host;
    this.#request = request;
    this.keys = keys;
    this.key = request.key;
    this.ttlMs = request.ttlMs;
    this.#attempts = new AttemptSeries(host, this, { acquireRequest: request, ignoresQueueLimit });
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
    this.#attempts.start();
  }

  /** The deadline has passed, or a vote request is due. */
  timerDue(): void {
    const now = this.#host.clock.now();
    if (now >= this.deadline) {
      this.#timeOut();
    } else if (!this.#attempts.current) {
      this.#host.timers.schedule(this, this.deadline);
      this.#attempts.start();
    } else {
      this.#retry(this.#attempts.current, now);
    }
  }

  /** The node's notifications arrive again, or the node has recovered. */
  requestVote(index: number): void {
    const voteRequest = this.#attempts.current?.voteRequests[index];
    if (voteRequest && !this.#isSettled && !this.#isTry) {
      voteRequest.send();
    }
  }

  /** A node that could not vote may vote now. */
  recount(): void {
    this.#attempts.current?.recount();
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

  won(majorityGrant: MajorityGrant): void {
    const attempt = this.#attempts.current as MajorityAttempt;
    this.#settle();
    // A queue entry has no metadata, so the first extension brings them at once.
    const lacksInfo =
      this.#request.info !== undefined && majorityGrant.votes.some(({ vote }) => vote.isNotified);
    const isClaim = majorityGrant.isClaim || lacksInfo;
    const grant = this.#host.grants.won(attempt, { ...majorityGrant, isClaim });
    publishVote(grant, majorityGrant, attempt.voteRequests.length, this.#host.clock);
    this.#resolve({ outcome: "granted", grant });
  }

  /** A clone of this process has the same tokens. */
  cloned(): void {
    if (this.#attempts.current) {
      this.unresolved();
    }
  }

  /** Continues with a new attempt, which keeps its ticket within an era of the nodes' time. */
  unresolved(): void {
    this.#attempts.restart();
  }

  onProgress(): void {
    if (this.#attempts.isOutdated) {
      this.unresolved();
    } else if (this.#isTry && !this.isBreakingTie) {
      this.#evaluateTry();
    } else {
      this.#waitForVotes();
    }
  }

  #retry(attempt: MajorityAttempt, now: number): void {
    if (now >= this.#splitVoteTimer.retryAt) {
      this.#splitVoteTimer.retried();
      if (this.#splitVoteTimer.isPauseDue && attempt.hasUnreachableVotes) {
        // No node can request these votes back. The pause returns them and resolves the split by chance.
        const pauseMs = this.#splitVoteTimer.pauseMs;
        this.#attempts.close();
        this.retryAt(now + pauseMs);
        return;
      }
      attempt.requestAll();
    } else {
      attempt.requestDue();
    }
    this.#waitForVotes();
  }

  /** Waits for further replies and notifications, unless the replies so far end the request. */
  #waitForVotes(): void {
    const attempt = this.#attempts.current;
    if (!attempt || this.#isSettled) {
      return;
    }
    if (attempt.isUncontested || !this.#endsByReplies(attempt)) {
      this.#splitVoteTimer.observe(attempt.isSplitVote);
      this.retryAt(Math.min(attempt.dueAt, this.#splitVoteTimer.retryAt));
    }
  }

  /** Ends the request if the replies so far make a majority impossible. @returns whether the request has ended */
  #endsByReplies(attempt: MajorityAttempt): boolean {
    const { voteRequests } = attempt;
    if (this.isBreakingTie && outcomeOfTry(voteRequests, attempt.nodeSet.majority) === "held") {
      this.#finishTry();
      return true;
    }
    const refusal = refusalOf(attempt, this.key);
    if (refusal !== undefined) {
      this.failed(refusal);
      return true;
    }
    if (!this.#wasQueued && voteRequests.some(({ position }) => position !== undefined)) {
      this.#wasQueued = true;
      this.#request.waiter?.onQueued?.(positionIn(voteRequests));
    }
    return false;
  }

  #evaluateTry(): void {
    const attempt = this.#attempts.current as MajorityAttempt;
    switch (outcomeOfTry(attempt.voteRequests, this.#host.nodeSet.majority)) {
      case "held":
        this.#finishTry();
        break;
      case "split":
        this.#breakTie();
        break;
      case "unanswered":
        this.failed(refusalOf(attempt, this.key) ?? this.#failure());
        break;
      case "open":
    }
  }

  /** No attempt has a majority: the tries queue for a short time, and the order of the queues decides. */
  #breakTie(): void {
    const { clock, nodeTimeoutMs } = this.#host;
    const attempt = this.#attempts.current as MajorityAttempt;
    this.isBreakingTie = true;
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
    if (this.isBreakingTie) {
      this.#finishTry();
    } else if (!this.#attempts.hasReplies || this.#isTry) {
      this.failed(this.#failure());
    } else {
      const position = positionIn(this.#attempts.current?.voteRequests ?? []);
      this.#abandon();
      void waitTimedOut(this.#host, this.#request, position).then(this.#resolve);
    }
  }

  #failure(): unknown {
    const attempt = this.#attempts.current;
    return attempt || this.#attempts.lastError === undefined
      ? quorumNotReached(this.#host.nodeSet, this.key, attempt)
      : withKey(this.#attempts.lastError, this.key);
  }

  retryAt(at: number): void {
    this.#host.timers.schedule(this, Math.min(at, this.deadline));
  }

  failed(error: unknown): void {
    this.#abandon();
    this.#reject(error);
  }

  /** Ends the request and cleans up its residue on the nodes. */
  #abandon(): void {
    this.#settle();
    this.#attempts.close();
  }

  #settle(): void {
    this.#isSettled = true;
    this.#attempts.end();
    this.#host.timers.cancel(this);
    this.#host.settled(this);
  }
}
