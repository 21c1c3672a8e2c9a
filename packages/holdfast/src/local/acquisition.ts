import type { AcquireRequest, AcquireResult, LockMode, PendingAcquire } from "../driver.ts";
import type { ResolvedAcquire } from "../options.ts";
import {
  engineOf,
  type FactsHost,
  type GrantedVia,
  isPublished,
  kindOf,
  type LockFacts,
  modeOf,
  nextNumber,
  publish,
  type WaitPlace,
} from "../diagnostics.ts";
import type { Clock } from "../runtime/clock.ts";
import { isLockError, LockError, WaitTimeoutError } from "../errors.ts";
import { type CreatedLease, type LeaseHandle, LeaseState } from "../lease/lease-state.ts";
import type { Waiter } from "../lock-state.ts";
import { onAbort } from "../runtime/abort-listeners.ts";
import { QueueNode } from "../runtime/linked-queue.ts";
import type { Scheduled } from "../runtime/timer-queue.ts";
import { absent, type Indexed } from "../runtime/unordered-set.ts";
import { remainingValidityMs } from "../validity.ts";
import type { KeyQueues, LocalQueue, LocalWaiter } from "./local-queue.ts";
import type { LocalCoordinator } from "./coordinator.ts";

/** The waiting call that a request belongs to. */
interface WaitingCall {
  readonly lockMode: LockMode | undefined;
  readonly ticket: number | undefined;
  onDequeued(): void;
  onQueued(position: number | undefined): void;
}

/**
 * If the engine loses its counter, it starts again at its clock in µs. A larger block of numbers could still be ahead of that clock, and
 * numbers would repeat.
 */
const maxHandovers = 64;

/** The request of one call to the engine. @param wait absent: the call only tries */
function requestFor(
  host: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
  wait?: { readonly deadline: number; readonly caller: WaitingCall; readonly isRequeue: boolean },
): AcquireRequest {
  const isContended = wait?.isRequeue === true || host.isContended(key, options.lockMode);
  return {
    key,
    lockMode: wait?.caller.lockMode ?? options.lockMode,
    ttlMs: options.firstTtlMs ?? options.ttlMs,
    deadline: wait?.deadline ?? null,
    ticket: wait?.caller.ticket,
    waiter: wait?.caller,
    fencingCount: isContended ? fencingCountFor(host, options) : 1,
    info: options.info,
  };
}

/**
 * How many fencing tokens to request: one for each possible hand-over. This applies only if another caller of this process waits, or has
 * the lock. Such a caller often returns at once.
 * A lone caller requests one fencing token, so the engine always knows the fencing token of its lease.
 */
function fencingCountFor(host: LocalCoordinator, options: ResolvedAcquire): number {
  const { handover } = host.options;
  return handover && options.renew && usesLocalQueue(host, options)
    ? Math.min(handover.max, maxHandovers) + 1
    : 1;
}

/** Readers and writers do not queue locally, because a run of local readers would keep a writer waiting. */
function usesLocalQueue({ usesLocalQueues }: LocalCoordinator, { lockMode }: ResolvedAcquire): boolean {
  return usesLocalQueues && lockMode?.kind !== "read-write";
}

type WaitHost = FactsHost & { readonly clock: Clock };

/** Reports the wait of one call of acquire in diagnostics. A call that is never queued has none. */
export class WaitReport {
  readonly #host: WaitHost;
  readonly #key: string;
  readonly #options: ResolvedAcquire;
  readonly #since: number;
  #where: WaitPlace | undefined;
  #call: number | undefined;
  #queuedMs: number | undefined;

  private constructor(host: WaitHost, key: string, options: ResolvedAcquire) {
    this.#host = host;
    this.#key = key;
    this.#options = options;
    this.#since = host.clock.now();
  }

  /** Undefined: nothing subscribes to waits. */
  static begin(host: WaitHost, key: string, options: ResolvedAcquire): WaitReport | undefined {
    const isObserved = options.trace !== undefined || isPublished("queued") || isPublished("granted");
    return isObserved ? new WaitReport(host, key, options) : undefined;
  }

  /** Reports the first wait at each place. */
  queued(where: WaitPlace, position: number | undefined): void {
    if (this.#where !== where) {
      this.#where = where;
      publish("queued", () => ({ ...this.#facts(), where, position }));
    }
  }

  granted(fencingToken: bigint, via: GrantedVia): void {
    const queuedMs = this.ended();
    const where = this.#where ?? "process";
    publish("granted", () => ({ ...this.#facts(), where, queuedMs, via, fencingToken }));
  }

  /** Adds the time of this wait to the trace of the call, once. @returns that time, ms */
  ended(): number {
    if (this.#queuedMs === undefined) {
      this.#queuedMs = this.#host.clock.now() - this.#since;
      const { trace } = this.#options;
      if (trace) {
        trace.queuedMs = (trace.queuedMs ?? 0) + this.#queuedMs;
      }
    }
    return this.#queuedMs;
  }

  #facts(): LockFacts & { call: number } {
    const { trace, lockMode } = this.#options;
    this.#call ??= trace?.call ?? nextNumber("call");
    return {
      call: this.#call,
      key: this.#key,
      instance: this.#host.instance,
      engine: engineOf(this.#host),
      kind: kindOf(lockMode),
      mode: modeOf(lockMode),
    };
  }
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
  readonly #host: LocalCoordinator;
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

  constructor(host: LocalCoordinator, queues: KeyQueues<LeaseState>, key: string, options: ResolvedAcquire) {
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
    // The holder before may have confirmed its claim.
    const own = { fencingToken: previous.fencingToken + 1n, isClaim: previous.isClaim };
    const created = LeaseState.create(this.#host, previous.grant, this.#options, own);
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

  #succeed({ lease }: CreatedLease, via: GrantedVia): void {
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

/**
 * Waits for the lock, first in the local queue and then at the engine.
 * Rejects with a `WaitTimeoutError`, the signal's reason, `closed`, `too-many-waiters`, or the engine's error.
 */
export function acquire(
  coordinator: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
): Promise<LeaseHandle> {
  const queues = coordinator.queuesOf(key);
  if (queues.waiterCount >= coordinator.options.maxWaiters) {
    const message = `${queues.waiterCount} callers of this process already wait for "${key}"; the limit is \`maxWaiters\``;
    return Promise.reject(new LockError(message, { code: "too-many-waiters", key, retryable: true }));
  }
  return new Acquisition(coordinator, queues, key, options).start();
}

/** Tries once, without waiting. */
export async function tryAcquire(
  coordinator: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
): Promise<{ lease: LeaseHandle } | { held: Extract<AcquireResult, { outcome: "held" }> }> {
  const { driver } = coordinator;
  const local = coordinator.holderOf(key);
  if (local && options.lockMode === undefined) {
    return { held: { outcome: "held", holder: local.describe() } };
  }
  const pending = driver.acquire(requestFor(coordinator, key, options));
  const acquired = await coordinator.awaitCancellable(pending, options);
  if (acquired.outcome === "held") {
    return { held: acquired };
  }
  if (options.trace) {
    options.trace.via = acquired.grant.via ?? "reply";
  }
  const { state: leaseState, lease } = LeaseState.create(coordinator, acquired.grant, options);
  if (usesLocalQueue(coordinator, options)) {
    coordinator.queuesOf(key).queueFor(options.lockMode).startRun(leaseState, coordinator.clock.now());
  }
  return { lease };
}
