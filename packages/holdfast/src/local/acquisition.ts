import type { Scheduled } from "../runtime/timer-queue.ts";
import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "./coordinator.ts";
import { publish } from "../diagnostics.ts";
import type { AcquireResult, AcquireRequest, PendingAcquire, LockMode, MultiAcquired } from "../driver.ts";
import { closedError, EngineError, LockError, QuorumError, WaitTimeoutError } from "../errors.ts";
import type { CreatedLease } from "../lease/lease-host.ts";
import { LeaseState } from "../lease/lease-state.ts";
import type { KeyQueues } from "./key-queues.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import type { LocalWaiter, LocalQueue } from "./local-queue.ts";
import type { ResolvedAcquire } from "../options.ts";
import { absent, type Indexed } from "../runtime/unordered-set.ts";
import { QueueNode } from "../runtime/linked-queue.ts";
import type { Waiter } from "../lock-state.ts";
import { remainingValidityMs } from "../validity.ts";

/**
 * One acquisition that may wait: from options through the local line and the driver to a lease.
 * Rejects with a `WaitTimeoutError`, the signal's reason, `closed`, `too-many-waiters`, or what the engine said.
 */
export function acquire(
  coordinator: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
): Promise<LeaseHandle> {
  const queues = coordinator.queuesOf(key);
  if (queues.waiterCount >= coordinator.options.maxWaiters) {
    const message = `${queues.waiterCount} callers of this process already wait for "${key}"`;
    return Promise.reject(new LockError(message, { code: "too-many-waiters", key, retryable: true }));
  }
  return new Acquisition(coordinator, queues, key, options).start();
}

/** One try: a lease, or null where another holds the lock. */
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
  const { state: leaseState, lease } = LeaseState.create(coordinator, acquired.grant, options);
  if (usesLocalQueue(coordinator, options)) {
    coordinator.queuesOf(key).queueFor(options.lockMode).startRun(leaseState, coordinator.clock.now());
  }
  return { lease };
}

/** Whether the engine can take these keys in one step. */
export function canAcquireMany({ driver }: LocalCoordinator, keys: readonly string[]): boolean {
  return driver.acquireMany !== undefined && driver.canAcquireMany?.(keys) !== false;
}

/** Several keys in one step: a lease for each, null where one is held; undefined where the engine has no such step. */
export async function tryAcquireMany(
  coordinator: LocalCoordinator,
  keys: readonly string[],
  options: ResolvedAcquire,
): Promise<readonly LeaseHandle[] | null | undefined> {
  const { driver } = coordinator;
  if (!driver.acquireMany) {
    return undefined;
  } else if (keys.some((key) => coordinator.holderOf(key))) {
    return null;
  }
  const pending = driver.acquireMany(keys.map((key) => requestFor(coordinator, key, options)));
  const result = await untilCancelled(coordinator, pending, options);
  if (result.outcome === "held") {
    return null;
  }
  return result.grants.map((grant) => {
    const { state: leaseState, lease } = LeaseState.create(coordinator, grant, options);
    if (usesLocalQueue(coordinator, options)) {
      coordinator.queuesOf(grant.key).mutex.startRun(leaseState, coordinator.clock.now());
    }
    return lease;
  });
}

/** Waits until the caller's signal, or `close()`, ends it. What is granted nevertheless is declined. */
async function untilCancelled(
  coordinator: LocalCoordinator,
  pending: Promise<MultiAcquired>,
  { signal }: ResolvedAcquire,
): Promise<MultiAcquired> {
  const stopListening: (() => void)[] = [];
  const cancelled = new Promise<never>((_resolve, reject) => {
    for (const source of [coordinator.closing, ...(signal ? [signal] : [])]) {
      stopListening.push(onAbort(source, reject));
    }
  });
  const releaseIfCancelled = (result: MultiAcquired): MultiAcquired => {
    if ((coordinator.isClosed || signal?.aborted === true) && result.outcome === "granted") {
      for (const grant of result.grants) {
        coordinator.abandonGrant(grant);
      }
      throw coordinator.isClosed ? closedError() : signal?.reason;
    }
    return result;
  };
  pending.then(releaseIfCancelled).catch(() => undefined);
  try {
    return releaseIfCancelled(await Promise.race([pending, cancelled]));
  } finally {
    for (const stop of stopListening) {
      stop();
    }
  }
}

function requestFor(
  coordinator: LocalCoordinator,
  key: string,
  options: ResolvedAcquire,
  wait?: { readonly deadline: number; readonly caller: Acquisition; readonly from: LeaseState | undefined },
): AcquireRequest {
  const isContended = wait?.from !== undefined || coordinator.isContended(key, options.lockMode);
  return {
    key,
    lockMode: wait?.caller.lockMode ?? options.lockMode,
    ttlMs: options.ttlMs,
    deadline: wait?.deadline ?? null,
    ticket: wait?.caller.ticket,
    waiter: wait?.caller,
    fencingCount: isContended ? fencingCountFor(coordinator, options) : 1,
    info: options.info,
  };
}

/**
 * Numbers for a whole run of hand-overs. A request asks for them only if another caller of this process waits, has the same, or gives
 * up the lock in the same step: that caller often comes again at once. A lone caller has one number, so the engine knows its lease exactly.
 */
function fencingCountFor(coordinator: LocalCoordinator, options: ResolvedAcquire): number {
  const { handover } = coordinator.options;
  return handover && options.renew && usesLocalQueue(coordinator, options)
    ? Math.min(handover.max, maxHandovers) + 1
    : 1;
}

/** Readers and writers ask the engine each by itself: a run of readers would keep a writer waiting. */
function usesLocalQueue(coordinator: LocalCoordinator, { lockMode }: ResolvedAcquire): boolean {
  return coordinator.usesLocalQueues && lockMode?.kind !== "read-write";
}

/** An engine that does not answer in less than this may be well. */
const minReplyMs = 50;
const keepAliveMs = 86_400_000;
/** Blocks of more numbers could run ahead of the engine's clock, which is their floor when it has forgotten them. */
const maxHandovers = 64;

/** A caller that waits: first in the local line, then at the engine. */
export class Acquisition implements LocalWaiter<LeaseState>, Indexed, Scheduled {
  dueAt = 0;
  slot = -1;
  index: number = absent;
  readonly queueNode: QueueNode<LocalWaiter<LeaseState>> = new QueueNode<LocalWaiter<LeaseState>>(this);
  isAtEngine = false;
  readonly #coordinator: LocalCoordinator;
  readonly #queues: KeyQueues<LeaseState>;
  readonly #queue: LocalQueue<LeaseState>;
  readonly #key: string;
  readonly #options: ResolvedAcquire;
  readonly #startedAt: number;
  readonly #deadline: number;
  /** Its place in the queue; undefined: that of when it comes there. */
  readonly ticket: number | undefined;
  #requestedAt = 0;
  readonly #usesLocalQueue: boolean;
  #hasWaited = false;
  #pending: PendingAcquire | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  #isSettled = false;
  #stopListening: (() => void) | undefined;
  #resolve!: (lease: LeaseHandle) => void;
  #reject!: (reason: unknown) => void;

  constructor(
    coordinator: LocalCoordinator,
    queues: KeyQueues<LeaseState>,
    key: string,
    options: ResolvedAcquire,
  ) {
    this.#coordinator = coordinator;
    this.#queues = queues;
    this.#queue = queues.queueFor(options.lockMode);
    this.#key = key;
    this.#options = options;
    this.#startedAt = coordinator.clock.now();
    this.#deadline = this.#startedAt + options.waitMs;
    this.ticket = options.ticket ?? coordinator.driver.ticket(key);
    this.#usesLocalQueue = usesLocalQueue(coordinator, options);
  }

  start(): Promise<LeaseHandle> {
    const promise = new Promise<LeaseHandle>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#coordinator.acquisitions.add(this);
    const { signal } = this.#options;
    if (signal) {
      this.#stopListening = onAbort(signal, (reason) => this.cancel(reason));
    }
    if (this.#usesLocalQueue) {
      this.#queue.enqueue(this);
      if (!this.#pending && !this.#isSettled) {
        this.#hasWaited = true;
        publish("queued", () => ({ key: this.#key, position: this.#queue.waiterCount - 1 }));
        this.#coordinator.waitTimers.schedule(this, this.#deadline);
      }
      this.#keepProcessAlive();
    } else {
      this.#queues.directWaiters += 1;
      void this.requestFromEngine();
      this.#keepProcessAlive();
    }
    return promise;
  }

  /** Ends the waiting with `reason`; a grant that races it is declined. */
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

  /** Its time in the local line is over. At the engine the driver watches the deadline. */
  timeOut(): void {
    if (this.#deadline === Infinity) {
      this.#keepProcessAlive();
      return;
    }
    const holder = this.#queue.holder?.describe();
    const position = this.#queue.positionOf(this);
    this.#fail(new WaitTimeoutError(this.#key, this.#options.waitMs, holder, position));
  }

  describe(): Omit<Waiter, "position"> {
    const { clock, owner } = this.#coordinator;
    const since = Math.round(clock.wall() - (clock.now() - this.#startedAt));
    return { owner: this.#options.info?.owner ?? owner, since };
  }

  /** What it asks of the engine. */
  get lockMode(): LockMode | undefined {
    const { lockMode } = this.#options;
    return lockMode?.kind === "semaphore" && this.#hasWaited && this.#queue.wasGranted
      ? { ...lockMode, hasWaited: true }
      : lockMode;
  }

  canTakeOver(leaseState: LeaseState): boolean {
    const { ttlMs, renew } = this.#options;
    const { clock, driver } = this.#coordinator;
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
    const created = LeaseState.create(
      this.#coordinator,
      previous.grant,
      this.#options,
      previous.fencingToken + 1n,
    );
    publish("handover", () => ({ key: this.#key, fencingToken: created.state.fencingToken }));
    this.#succeed(created);
    return created.state;
  }

  requestFromEngine(previous?: LeaseState): Promise<boolean> | undefined {
    const { driver, waitTimers } = this.#coordinator;
    if (this.#deadline !== Infinity) {
      waitTimers.cancel(this);
    }
    this.#requestedAt = this.#coordinator.clock.now();
    const wait = { deadline: this.#deadline, caller: this, from: previous };
    const request = requestFor(this.#coordinator, this.#key, this.#options, wait);
    if (!previous) {
      this.#awaitResult(driver.acquire(request));
      return undefined;
    }
    const pending = driver.requeue(previous.grant, request);
    this.#awaitResult(pending);
    return pending.released;
  }

  /** The next one's turn, who does not wait until this one is told who holds the lock. */
  onDequeued(): void {
    if (this.#usesLocalQueue) {
      this.#queue.dequeue(this);
    }
  }

  /** Who waits without a deadline is waited for all the same: a timer of ours keeps the process alive. */
  #keepProcessAlive(): void {
    if (this.#deadline === Infinity && !this.#isSettled) {
      this.#coordinator.waitTimers.schedule(this, this.#coordinator.clock.now() + keepAliveMs);
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

  /** The local line took the time that an answer needs: that says nothing of the engine. */
  #hadTooLittleTime(error: unknown): boolean {
    const availableMs = this.#deadline - this.#requestedAt;
    const isShort = availableMs < this.#options.waitMs && availableMs < minReplyMs;
    const isUnanswered = error instanceof EngineError || error instanceof QuorumError;
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
      this.#coordinator.abandonGrant(result.grant);
      this.#fail(this.#cancelled.reason);
    } else {
      const created = LeaseState.create(this.#coordinator, result.grant, this.#options);
      if (this.#usesLocalQueue) {
        this.#queue.granted(this, created.state, this.#coordinator.clock.now());
      }
      this.#succeed(created);
    }
  }

  #succeed({ lease }: CreatedLease<LeaseState>): void {
    if (this.#settle()) {
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
    this.#coordinator.acquisitions.delete(this);
    this.#coordinator.waitTimers.cancel(this);
    this.#stopListening?.();
    if (!this.#usesLocalQueue) {
      this.#queues.directWaiters -= 1;
    }
    return true;
  }
}
