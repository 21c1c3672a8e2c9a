import type { AcquireRequest } from "../../../driver.ts";
import { LockError } from "../../../errors.ts";
import { backoffMs } from "../../../runtime/random.ts";
import type { Scheduled } from "../../../runtime/timer-queue.ts";
import { MajorityAttempt, type MajorityAttemptListener } from "./majority-attempt.ts";
import { withKey } from "./quorum-error.ts";
import type { QuorumHost } from "./quorum-acquire.ts";

/** The request of a series. */
interface AttemptSeriesListener extends MajorityAttemptListener {
  /** A try that waits for its turn, because no try has a majority. */
  readonly isBreakingTie: boolean;
  /** The request can never succeed. */
  failed(error: unknown): void;
  /** The next attempt can start at this time, on the scale of `clock.now()`. */
  retryAt(at: number): void;
}

interface AttemptSeriesOptions {
  readonly acquireRequest: AcquireRequest;
  readonly ignoresQueueLimit: boolean;
}

/** The majority attempts of one request, one after another, each with a fresh token. */
export class AttemptSeries<Request extends Scheduled> {
  /** The attempt that is under way. */
  current: MajorityAttempt | undefined;
  /** Why the last handshake with the nodes failed. */
  lastError: unknown;
  readonly #host: QuorumHost<Request>;
  readonly #listener: AttemptSeriesListener;
  readonly #options: AttemptSeriesOptions;
  /** The request's ticket in the queues of the nodes. */
  #ticket: number | undefined;
  /** The era of the nodes' time in which the ticket and the deadline in the queues were written. */
  #era: number | undefined;
  #isEnded = false;
  #hadReplies = false;
  #connectFailures = 0;

  constructor(host: QuorumHost<Request>, listener: AttemptSeriesListener, options: AttemptSeriesOptions) {
    this.#host = host;
    this.#listener = listener;
    this.#options = options;
  }

  /** A majority of the nodes has replied, or may still reply as to the attempt before. */
  get hasReplies(): boolean {
    return this.current?.isAnswered(this.#hadReplies) ?? this.#hadReplies;
  }

  /** The nodes' time was corrected since the attempt started: its ticket and its deadline in the queues are wrong. */
  get isOutdated(): boolean {
    return this.#era !== this.#host.nodeSet.era;
  }

  /** Starts an attempt, after the handshake with the nodes. */
  start(): void {
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

  /** Replaces the attempt. */
  restart(): void {
    this.close();
    this.#startAttempt();
  }

  /** Closes the attempt and cleans up its residue. */
  close(): void {
    const { current } = this;
    if (current) {
      this.#hadReplies = this.hasReplies;
      current.close();
      this.#host.grants.abandoned(current);
      this.current = undefined;
    }
  }

  /** No further attempt starts. */
  end(): void {
    this.#isEnded = true;
  }

  /** An abandoned token is never used again, because its clean-up may still be under way. */
  #startAttempt(): void {
    if (this.#isEnded || this.current) {
      return;
    }
    const { nodeSet, grants } = this.#host;
    try {
      nodeSet.assertDistinctNodes();
    } catch (error) {
      this.#listener.failed(error);
      return;
    }
    this.current = new MajorityAttempt(this.#host, this.#listener, {
      ...this.#options,
      token: this.#host.tokenFor(this.#options.acquireRequest, this.#nextTicket()),
    });
    this.current.waits ||= this.#listener.isBreakingTie;
    grants.opened(this.current);
    this.current.requestAll();
  }

  #connectFailed(error: unknown): void {
    if (this.#isEnded) {
      return;
    }
    this.lastError = error;
    if (error instanceof LockError && !error.retryable) {
      this.#listener.failed(withKey(error, this.#listener.key));
      return;
    }
    this.#connectFailures += 1;
    this.#listener.retryAt(this.#host.clock.now() + backoffMs(this.#host.random, this.#connectFailures));
  }

  /** The attempts of one request keep its ticket within one era. */
  #nextTicket(): number {
    const { nodeSet } = this.#host;
    const { era } = nodeSet;
    if (this.#ticket === undefined) {
      this.#ticket = this.#options.acquireRequest.ticket ?? nodeSet.ticket();
    } else if (era !== this.#era) {
      this.#ticket = nodeSet.ticket();
    }
    this.#era = era;
    return this.#ticket;
  }
}
