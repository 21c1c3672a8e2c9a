import { publish, type GrantedVia, type WaitPlace } from "../diagnostics.ts";
import type { AcquireResult, Grant, LockMode, PendingAcquire } from "../driver.ts";
import { isLockError, WaitTimeoutError } from "../errors.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import type { CreatedLease, LeaseHost } from "../lease/lease-host.ts";
import { LeaseState } from "../lease/lease-state.ts";
import type { Waiter } from "../lock-state.ts";
import type { ResolvedAcquire } from "../options.ts";
import { onAbort } from "../runtime/abort-listeners.ts";
import { QueueNode } from "../runtime/linked-queue.ts";
import type { Scheduled, TimerQueue } from "../runtime/timer-queue.ts";
import { absent, type Indexed, type UnorderedSet } from "../runtime/unordered-set.ts";
import { remainingValidityMs } from "../validity.ts";
import { requestFor, usesLocalQueue, type RequestHost } from "./acquire-request.ts";
import type { KeyQueues } from "./key-queues.ts";
import type { LocalQueue, LocalWaiter } from "./local-queue.ts";
import { WaitReport } from "./wait-report.ts";

/** The surroundings of an acquisition in its process. */
export interface AcquisitionHost extends RequestHost, LeaseHost<LeaseState> {
  /** All acquisitions that are not settled. */
  readonly acquisitions: UnorderedSet<Acquisition>;
  /** Calls {@link Acquisition.timeOut} at the deadlines of local waiters. */
  readonly waitTimers: TimerQueue<Acquisition>;
  /** Releases a grant that arrived after its caller had stopped waiting. */
  abandonGrant(grant: Grant): void;
}

/** A healthy engine may leave a request unanswered for this time. */
const minReplyMs = 50;
const keepAliveMs = 86_400_000;

/** One waiting call of `acquire`: first in the local queue, then at the engine. */
export class Acquisition implements LocalWaiter<LeaseState>, Indexed, Scheduled {
  dueAt = 0;
  slot = -1;
  index: number = absent;
  readonly queueNode: QueueNode<LocalWaiter<LeaseState>> = new QueueNode<LocalWaiter<LeaseState>>(this);
  isAtEngine = false;
  readonly #host: AcquisitionHost;
  readonly #queues: KeyQueues<LeaseState>;
  readonly #queue: LocalQueue<LeaseState>;
  readonly #key: string;
  readonly #options: ResolvedAcquire;
  readonly #startedAt: number;
  readonly #deadline: number;
  /** The ticket in the engine's queue; undefined: the request gets one on its arrival. */
  readonly ticket: number | undefined;
  #requestedAt = 0;
  readonly #usesLocalQueue: boolean;
  #hasWaited = false;
  #pending: PendingAcquire | undefined;
  #wait: WaitReport | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  #isSettled = false;
  #stopListening: (() => void) | undefined;
  #resolve!: (lease: LeaseHandle) => void;
  #reject!: (reason: unknown) => void;

  constructor(host: AcquisitionHost, queues: KeyQueues<LeaseState>, key: string, options: ResolvedAcquire) {
    this.#host = host;
    this.#queues = queues;
    this.#queue = queues.queueFor(options.lockMode);
    this.#key = key;
    this.#options = options;
    this.#startedAt = host.clock.now();
    this.#deadline = this.#startedAt + options.waitMs;
    this.ticket = options.ticket ?? host.driver.ticket(key);
    this.#usesLocalQueue = usesLocalQueue(host, options);
  }

  start(): Promise<LeaseHandle> {
    const promise = new Promise<LeaseHandle>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#host.acquisitions.add(this);
    const { signal } = this.#options;
    if (signal) {
      this.#stopListening = onAbort(signal, (reason) => this.cancel(reason));
    }
    if (this.#usesLocalQueue) {
      this.#queue.enqueue(this);
      if (!this.#pending && !this.#isSettled) {
        this.#hasWaited = true;
        this.onQueued(this.#queue.waiterCount - 1, "process");
        this.#host.waitTimers.schedule(this, this.#deadline);
      }
      this.#keepProcessAlive();
    } else {
      this.#queues.directWaiters += 1;
      void this.requestFromEngine();
      this.#keepProcessAlive();
    }
    return promise;
  }

  /** Rejects the call with `reason`. A grant that is under way is abandoned. */
  cancel(reason: unknown): void {
    if (this.#isSettled || this.#cancelled) {
      return;
    }
    this.#cancelled = { reason };
    if (this.#pending) {
      this.#pending.cancel(reason);
    } else {
      this.#fail(reason);
    }
  }

  /** The deadline has passed in the local queue. At the engine the driver watches the deadline. */
  timeOut(): void {
    if (this.#deadline === Infinity) {
      this.#keepProcessAlive();
      return;
    }
    const holder = this.#queue.holder?.describe();
    const position = this.#queue.positionOf(this);
    this.#fail(new WaitTimeoutError(this.#key, this.#options.waitMs, holder, position));
  }

  get key(): string {
    return this.#key;
  }

  get waitedMs(): number {
    return this.#host.clock.now() - this.#startedAt;
  }

  describe(): Omit<Waiter, "position"> {
    const { clock, owner } = this.#host;
    const waitedMs = Math.floor(this.waitedMs);
    const since = Math.round(clock.wall() - waitedMs);
    return { owner: this.#options.info?.owner ?? owner, since, waitedMs };
  }

  /** The mode to request. For a semaphore, the mode says whether the caller has waited after grants of the same limit. */
  get lockMode(): LockMode | undefined {
    const { lockMode } = this.#options;
    return lockMode?.kind === "semaphore" && this.#hasWaited && this.#queue.wasGranted
      ? { ...lockMode, hasWaited: true }
      : lockMode;
  }

  canTakeOver(leaseState: LeaseState): boolean {
    const { ttlMs, renew } = this.#options;
    const { clock, driver } = this.#host;
    const used = Number(leaseState.fencingToken - leaseState.grant.fencingToken) + 1;
    const needed = Math.min(ttlMs, driver.capabilities.claimMs) / 3;
    return (
      renew &&
      leaseState.canBeHandedOver &&
      used < leaseState.grant.fencingCount &&
      remainingValidityMs(leaseState.validity, clock) >= needed
    );
  }

  takeOver(previous: LeaseState): LeaseState {
    const grant = { ...previous.grant, isClaim: previous.isClaim }; // the holder before may have confirmed its claim
    const created = LeaseState.create(this.#host, grant, this.#options, previous.fencingToken + 1n);
    publish("handover", () => created.state.facts());
    this.#succeed(created, "handover");
    return created.state;
  }

  requestFromEngine(previous?: LeaseState): Promise<boolean> | undefined {
    const { driver, waitTimers } = this.#host;
    if (this.#deadline !== Infinity) {
      waitTimers.cancel(this);
    }
    this.#requestedAt = this.#host.clock.now();
    const wait = { deadline: this.#deadline, caller: this, isRequeue: previous !== undefined };
    const request = requestFor(this.#host, this.#key, this.#options, wait);
    if (!previous) {
      this.#awaitResult(driver.acquire(request));
      return undefined;
    }
    const pending = driver.requeue(previous.grant, request);
    this.#awaitResult(pending);
    return pending.released;
  }

  /** The engine has removed this request from its queue. The next local waiter requests at once, before this request has its result. */
  onDequeued(): void {
    if (this.#usesLocalQueue) {
      this.#queue.dequeue(this);
    }
  }

  /** The call waits in the local queue, or at the engine. */
  onQueued(position: number | undefined, where: WaitPlace = "engine"): void {
    this.#wait ??= WaitReport.begin(this.#host, this.#key, this.#options);
    this.#wait?.queued(where, position);
  }

  /** A wait without a deadline also keeps the process alive, by a timer. */
  #keepProcessAlive(): void {
    if (this.#deadline === Infinity && !this.#isSettled) {
      this.#host.waitTimers.schedule(this, this.#host.clock.now() + keepAliveMs);
    }
  }

  #awaitResult(pending: PendingAcquire): void {
    this.#pending = pending;
    pending.result.then(
      (acquired) => this.#settleWith(acquired),
      (error: unknown) =>
        this.#fail(
          this.#hadTooLittleTime(error) ? new WaitTimeoutError(this.#key, this.#options.waitMs) : error,
        ),
    );
  }

  /** Whether the wait in the local queue left too little time for a reply, so that the engine is not at fault. */
  #hadTooLittleTime(error: unknown): boolean {
    const availableMs = this.#deadline - this.#requestedAt;
    const isShort = availableMs < this.#options.waitMs && availableMs < minReplyMs;
    const isUnanswered = isLockError(error, "engine-unavailable") || isLockError(error, "quorum-not-reached");
    return isShort && isUnanswered && error.outcome === "unknown";
  }

  #settleWith(result: AcquireResult): void {
    if (this.#isSettled) {
      return;
    }
    const { waitMs } = this.#options;
    if (result.outcome === "held") {
      this.#fail(new WaitTimeoutError(this.#key, waitMs, result.holder, result.position));
    } else if (this.#cancelled) {
      this.#host.abandonGrant(result.grant);
      this.#fail(this.#cancelled.reason);
    } else {
      const created = LeaseState.create(this.#host, result.grant, this.#options);
      if (this.#usesLocalQueue) {
        this.#queue.granted(this, created.state, this.#host.clock.now());
      }
      this.#succeed(created, result.grant.via ?? "reply");
    }
  }

  #succeed({ lease }: CreatedLease<LeaseState>, via: GrantedVia): void {
    if (this.#settle()) {
      const { trace } = this.#options;
      if (trace) {
        trace.via = via;
      }
      this.#wait?.granted(lease.fencingToken, via);
      this.#resolve(lease);
    }
  }

  #fail(error: unknown): void {
    if (this.#settle()) {
      if (this.#usesLocalQueue) {
        this.#queue.dequeue(this);
      }
      this.#reject(error);
    }
  }

  #settle(): boolean {
    if (this.#isSettled) {
      return false;
    }
    this.#isSettled = true;
    this.#wait?.ended();
    this.#host.acquisitions.delete(this);
    this.#host.waitTimers.cancel(this);
    this.#stopListening?.();
    if (!this.#usesLocalQueue) {
      this.#queues.directWaiters -= 1;
    }
    return true;
  }
}
