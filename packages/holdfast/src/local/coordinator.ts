import type { AcquireResult, Driver, Grant, HolderReport, LockMode, PendingAcquire } from "../driver.ts";
import { nextNumber } from "../diagnostics.ts";
import { closedError, type LossReason } from "../errors.ts";
import { checkKey } from "../option-checks.ts";
import type { LeaseState } from "../lease/lease-state.ts";
import { type RenewalBackup, Watchdog } from "../lease/watchdog.ts";
import type { FenceState, HeldLease, LockEvent, LockState } from "../lock-state.ts";
import type { ResolvedAcquire, ResolvedLocks } from "../options.ts";
import { onAbort } from "../runtime/abort-listeners.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { TimerQueue } from "../runtime/timer-queue.ts";
import { UnorderedSet } from "../runtime/unordered-set.ts";
import { addReporter } from "../processes/local-reports.ts";
import { engineExpiry } from "../validity.ts";
import type { Acquisition } from "./acquisition.ts";
import { heldLease, ownsFencingToken, withLocalQueues } from "./local-view.ts";
import { KeyQueues, type LocalQueue } from "./local-queue.ts";

/**
 * Up to this many keys keep their idle queues, because a key may be used again. More queues would outlive the collections of young
 * objects, and cost more than new ones.
 */
const idleQueuesKept = 128;

/** The state that all callers of one `Locks` share: local queues, waiting calls, and held leases. */
export class LocalCoordinator {
  /** The number of the `Locks` in diagnostics. */
  readonly instance: number = nextNumber("instance");
  readonly driver: Driver;
  readonly clock: Clock;
  readonly options: ResolvedLocks;
  readonly watchdog: Watchdog;
  /** All acquisitions that are not settled. */
  readonly acquisitions: UnorderedSet<Acquisition> = new UnorderedSet();
  /** The deadlines of waiters in local queues. The timer keeps the process alive, because callers wait for it. */
  readonly waitTimers: TimerQueue<Acquisition>;
  readonly usesLocalQueues: boolean;
  readonly #backup: RenewalBackup | undefined;
  readonly #closing = new AbortController();
  /** The timers of grants that are kept for `minHoldMs`. */
  readonly #keptGrants = new Set<Timer>();
  readonly #abandonedReleases = new Set<Promise<boolean>>();
  #queues = new Map<string, KeyQueues<LeaseState>>();
  #sweepThreshold = idleQueuesKept;

  constructor(driver: Driver, options: ResolvedLocks) {
    this.driver = driver;
    this.clock = driver.clock;
    this.options = options;
    this.#backup = options.watchdog?.start(driver);
    this.watchdog = new Watchdog(driver.clock, driver.random, this.#backup);
    this.waitTimers = new TimerQueue(
      driver.clock,
      (acquisition) => {
        acquisition.timeOut();
      },
      true,
    );
    const { requeue, fencingBlocks } = driver.capabilities;
    this.usesLocalQueues = options.handover !== false && requeue && fencingBlocks;
  }

  /** Receives the events of the driver, and answers its questions. @returns a function that ends both */
  listen(): () => void {
    const stopListening = this.driver.listen({
      lost: (token, reason, cause) => this.markLost(token, reason, cause),
      notificationsInterrupted: () => this.verifyAll(),
      engineRecovered: () => this.watchdog.engineRecovered(),
    });
    const stopReporting = addReporter(this);
    return () => {
      stopListening();
      stopReporting();
    };
  }

  /** The start of the watchdog thread, for which new leases wait. */
  get starting(): Promise<void> | undefined {
    return this.#backup?.starting;
  }

  /** @throws {LockError} `invalid-key` */
  checkKey(key: string): void {
    this.driver.checkKey(checkKey(key));
  }

  /** Rejects if the key is invalid, or this `Locks` is closed. */
  async forKey<T>(key: string, operation: () => Promise<T>): Promise<T> {
    this.checkKey(key);
    this.assertOpen(key);
    return operation();
  }

  async whileOpen<T>(operation: () => Promise<T>): Promise<T> {
    this.assertOpen();
    return operation();
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** @throws {LockError} `closed` */
  assertOpen(key?: string): void {
    if (this.isClosed) {
      throw closedError(key);
    }
  }

  /** Aborted by {@link close}. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get owner(): string {
    return this.options.owner;
  }

  queuesOf(key: string): KeyQueues<LeaseState> {
    let queues = this.#queues.get(key);
    if (!queues) {
      if (this.#queues.size >= this.#sweepThreshold) {
        this.#queues = new Map([...this.#queues].filter(([, { isEmpty }]) => !isEmpty));
        this.#sweepThreshold = Math.max(idleQueuesKept, 2 * this.#queues.size);
      }
      queues = new KeyQueues();
      this.#queues.set(key, queues);
    }
    return queues;
  }

  /** Whether callers of this process wait in memory for the key in this mode, or already hold all of it. */
  isContended(key: string, lockMode: LockMode | undefined): boolean {
    const queue = this.#queueFor(key, lockMode);
    return queue !== undefined && (queue.localWaiterCount > 0 || queue.isFull);
  }

  /** The lease of this process that holds the key as a mutex, if its local queue has one. */
  holderOf(key: string): LeaseState | undefined {
    const holder = this.#queues.get(key)?.mutex.holder;
    return holder?.isHeld === true ? holder : undefined;
  }

  /** Merges a state from the engine with the holders and waiters that only this process knows. */
  withLocalState(engineState: LockState): LockState {
    const queues = this.#queues.get(engineState.key)?.queues;
    return queues ? withLocalQueues(engineState, queues, this.#heldLeases(engineState.key)) : engineState;
  }

  /** How long a grant may be handed over in memory, ms; 0: never. */
  get handoverMs(): number {
    const { handover } = this.options;
    return this.usesLocalQueues && handover ? handover.maxMs : 0;
  }

  /** Whether a release of the lease may hand it over in memory. Once false, it stays false. */
  mayHandOver(leaseState: LeaseState): boolean {
    const { handover } = this.options;
    const queue = this.#queueFor(leaseState.key, leaseState.lockMode);
    return handover !== false && queue?.mayHandOver(leaseState, this.clock.now(), handover) === true;
  }

  /** How many callers wait in memory for the lease, and for how long, as a report to the engine. After its first report, each extension of a grant reports the count, also 0. */
  localWaitersToReport(
    leaseState: LeaseState,
  ): Pick<HolderReport, "localWaiters" | "localWaitMs"> | undefined {
    const queue = this.#queueFor(leaseState.key, leaseState.lockMode);
    const first = queue?.holder === leaseState ? queue.first : undefined;
    if (queue && first) {
      queue.waiterReporter = leaseState;
      return { localWaiters: queue.localWaiterCount, localWaitMs: first.describe().waitedMs };
    }
    return queue?.waiterReporter?.grant === leaseState.grant ? { localWaiters: 0 } : undefined;
  }

  /** Merges each event of a watch with the local state at the time when the caller reads the event. */
  async *withLocalStates(events: AsyncIterable<LockEvent>): AsyncGenerator<LockEvent, void, undefined> {
    for await (const event of events) {
      yield { ...event, state: this.withLocalState(event.state) };
    }
  }

  /** Whether the lease with this fencing token was handed over in memory. The engine may not know of the hand-over yet. */
  wasHandedOver(key: string, fencingToken: bigint): boolean {
    return this.#heldLeases(key).some(
      (leaseState) =>
        ownsFencingToken(leaseState, { fencingToken }) && fencingToken < leaseState.fencingToken,
    );
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    if (this.wasHandedOver(key, fencingToken)) {
      return "stale";
    }
    const state = await this.driver.checkFence(key, fencingToken);
    return state === "unknown" ? this.#compareFence(key, fencingToken) : state;
  }

  /** Verifies the lease of this process with this fencing token at the engine. `unknown`: this process has no such lease. */
  async #compareFence(key: string, fencingToken: bigint): Promise<FenceState> {
    const own = (this.watchdog.targets() as LeaseState[]).find(
      (leaseState) => leaseState.key === key && leaseState.fencingToken === fencingToken && leaseState.isHeld,
    );
    if (!own) {
      return this.wasHandedOver(key, fencingToken) ? "stale" : "unknown";
    }
    const { token, fencingToken: first } = own.grant;
    const { outcome } = await this.driver.verify(key, token, first);
    return outcome === "valid" && own.isHeld ? "current" : "stale";
  }

  /** The leases in force, each with its waiters in memory. */
  held(): HeldLease[] {
    return this.heldLeases().map((lease) => heldLease(lease, this.clock, this.localWaitersOf(lease.key)));
  }

  heldLeases(): LeaseState[] {
    return (this.watchdog.targets() as LeaseState[]).filter(({ isHeld }) => isHeld);
  }

  /** How many callers wait in memory for the key. */
  localWaitersOf(key: string): number {
    const queues = this.#queues.get(key)?.queues ?? [];
    return queues.reduce((sum, queue) => sum + queue.localWaiterCount, 0);
  }

  /** Hands the lease over to the next local waiter, or releases its grant at the engine. */
  release(leaseState: LeaseState): Promise<boolean> {
    const { handover } = this.options;
    const queue = this.#queueFor(leaseState.key, leaseState.lockMode);
    if (queue && handover) {
      const decision = queue.release(leaseState, this.clock.now(), handover);
      if (decision.to === "caller") {
        return Promise.resolve(true);
      }
      if (decision.to === "others" && decision.released) {
        return decision.released;
      }
    }
    const { key, grant, validity } = leaseState;
    return this.driver.release(key, grant.token, engineExpiry(validity));
  }

  /** Releases the grant at the engine after `ms`, or leaves it to its TTL if the `Locks` is closed before. */
  releaseAfter({ key, grant }: LeaseState, ms: number): void {
    const timer = this.clock.setTimer(() => {
      this.#keptGrants.delete(timer);
      this.driver.release(key, grant.token, engineExpiry(grant.validity)).catch(() => false);
    }, ms);
    this.#keptGrants.add(timer);
  }

  /** Releases a grant that arrived after its caller had stopped waiting. {@link close} waits for these releases. */
  abandonGrant({ key, token, validity }: Grant): void {
    const released = this.driver.release(key, token, engineExpiry(validity)).catch(() => false);
    this.#abandonedReleases.add(released);
    void released.then(() => this.#abandonedReleases.delete(released));
  }

  /** Removes a lease that ended without a release from its queue, because the lease can no longer be handed over. */
  leaseEnded(leaseState: LeaseState): void {
    this.#queueFor(leaseState.key, leaseState.lockMode)?.leaseEnded(leaseState);
  }

  #queueFor(key: string, lockMode: LockMode | undefined): LocalQueue<LeaseState> | undefined {
    return this.#queues.get(key)?.queueFor(lockMode);
  }

  /** The leases of this process that are held and may be handed over. */
  #heldLeases(key: string): LeaseState[] {
    const queues = this.#queues.get(key)?.queues ?? [];
    return queues
      .flatMap(({ held: leaseStates }) => [...leaseStates])
      .filter((leaseState) => leaseState.isHeld);
  }

  /** Waits for a request until the caller's signal aborts. A grant that races the signal or `close()` is abandoned. */
  async awaitCancellable(
    pending: PendingAcquire,
    { signal }: Pick<ResolvedAcquire, "signal">,
  ): Promise<AcquireResult> {
    const stopListening = signal && onAbort(signal, pending.cancel.bind(pending));
    try {
      const acquired = await pending.result;
      if (acquired.outcome === "granted" && (this.isClosed || signal?.aborted === true)) {
        this.abandonGrant(acquired.grant);
        throw this.isClosed ? closedError(acquired.grant.key) : signal?.reason;
      }
      return acquired;
    } finally {
      stopListening?.();
    }
  }

  /** Declares leases lost. @param token null: all grants */
  markLost(token: string | null, reason: LossReason, cause?: unknown): void {
    for (const leaseState of this.watchdog.targets() as LeaseState[]) {
      if (token === null || leaseState.grant.token === token) {
        leaseState.markLost(reason, cause);
      }
    }
  }

  /** Verifies every lease, because notifications of losses may have been missed. */
  verifyAll(): void {
    for (const leaseState of this.watchdog.targets() as LeaseState[]) {
      void leaseState.verify();
    }
  }

  /** Rejects all waiters and releases all leases. A lease that is not released within `closeTimeoutMs` expires. */
  async close(): Promise<void> {
    this.#closing.abort(closedError());
    for (const acquisition of Array.from(this.acquisitions.items)) {
      acquisition.cancel(closedError());
    }
    const leaseStates = (this.watchdog.targets() as LeaseState[]).filter(
      (leaseState) => !leaseState.isOrphaned,
    );
    const releases = Promise.all([
      ...leaseStates.map((leaseState) => leaseState.releaseOnClose().catch(() => false)),
      ...this.#abandonedReleases,
    ]);
    await withTimeout(this.clock, this.options.closeTimeoutMs, releases);
    for (const leaseState of leaseStates) {
      leaseState.orphan();
    }
    for (const timer of this.#keptGrants) {
      this.clock.clearTimer(timer);
    }
    await this.#backup?.close();
  }
}
