import type { Acquisition } from "./acquisition.ts";
import { onAbort } from "../runtime/abort-listeners.ts";
import type { Clock } from "../runtime/clock.ts";
import type { AcquireResult, Driver, Grant, PendingAcquire, LockMode } from "../driver.ts";
import { closedError, type LossReason } from "../errors.ts";
import type { LeaseHost } from "../lease/lease-host.ts";
import type { LeaseState } from "../lease/lease-state.ts";
import { KeyQueues } from "./key-queues.ts";
import type { LocalQueue } from "./local-queue.ts";
import type { ResolvedAcquire, ResolvedLocks } from "../options.ts";
import {
  localWaitersOf,
  lockState,
  type FenceState,
  type Holder,
  type LockEvent,
  type LockState,
  type Waiter,
} from "../lock-state.ts";
import { UnorderedSet } from "../runtime/unordered-set.ts";
import { TimerQueue } from "../runtime/timer-queue.ts";
import { engineExpiry } from "../validity.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { Watchdog } from "../lease/watchdog.ts";

/** So many waiters are described; all are counted. */
const maxWaitersShown = 100;
/** So many lines are kept, also of keys that nobody uses any more: most are used again. */
const idleQueuesKept = 1_000;

/** What the callers of one `Locks` share: the lines before its keys, who waits, and who is held. */
export class LocalCoordinator implements LeaseHost<LeaseState> {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly options: ResolvedLocks;
  readonly watchdog: Watchdog;
  readonly acquisitions: UnorderedSet<Acquisition> = new UnorderedSet();
  /** The deadlines of those who wait in a local line: somebody waits for these timers. */
  readonly waitTimers: TimerQueue<Acquisition>;
  readonly usesLocalQueues: boolean;
  readonly #closing = new AbortController();
  readonly #abandonedReleases = new Set<Promise<boolean>>();
  #queues = new Map<string, KeyQueues<LeaseState>>();
  #sweepThreshold = idleQueuesKept;

  constructor(driver: Driver, options: ResolvedLocks) {
    this.driver = driver;
    this.clock = driver.clock;
    this.options = options;
    this.watchdog = new Watchdog(driver.clock, driver.random);
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

  /** Whether callers of this process wait in memory for the same of the key, or have all that there is of it. */
  isContended(key: string, lockMode: LockMode | undefined): boolean {
    const queue = this.#queueFor(key, lockMode);
    return queue !== undefined && (queue.localWaiterCount > 0 || queue.isFull);
  }

  /** Who of this process holds the key for itself alone, as far as the line knows. */
  holderOf(key: string): LeaseState | undefined {
    const holder = this.#queues.get(key)?.mutex.holder;
    return holder?.isHeld === true ? holder : undefined;
  }

  /**
   * What the engine says, corrected by what only this process knows: which caller was handed a lease in memory, and the callers that
   * wait in memory. Those come first where this process holds the lock and may hand it over, else behind the ones at the engine.
   * The engine may have a report of them from a holder of this process: they are not counted twice.
   */
  withLocalState(engineState: LockState): LockState {
    const queues = this.#queues.get(engineState.key)?.queues;
    if (!queues) {
      return engineState;
    }
    const leaseStates = this.#heldLeases(engineState.key);
    const reporters = queues.map(({ waiterReporter }) => waiterReporter);
    const newerLeases = engineState.holders.map((holder) =>
      leaseStates.find(
        (leaseState) =>
          ownsFencingToken(leaseState, holder) && leaseState.fencingToken > (holder.fencingToken ?? 0n),
      ),
    );
    const hasNewerHolder = newerLeases.some((leaseState) => leaseState !== undefined);
    const waitingCount = queues.reduce((sum, queue) => sum + queue.localWaiterCount, 0);
    const isOwn = engineState.holders.map((holder) =>
      [...leaseStates, ...reporters].some((leaseState) => ownsFencingToken(leaseState, holder)),
    );
    const state = withoutReportedWaiters(engineState, isOwn);
    return hasNewerHolder || waitingCount > 0
      ? lockState({
          ...state,
          ...(hasNewerHolder && withLocalHolders(state, newerLeases)),
          ...this.#withLocalWaiters(state, queues, leaseStates.length > 0),
        })
      : state;
  }

  /** For the engine: how many callers wait in memory for a hold. The report of a grant is repeated until the grant ends. */
  localWaitersToReport(leaseState: LeaseState): number | undefined {
    const queue = this.#queueFor(leaseState.key, leaseState.lockMode);
    const waiting = queue?.holder === leaseState ? queue.localWaiterCount : 0;
    if (queue && waiting > 0) {
      queue.waiterReporter = leaseState;
    }
    return queue?.waiterReporter?.grant === leaseState.grant ? waiting : undefined;
  }

  /** Changes of the engine's state, each corrected when it is read. */
  async *withLocalStates(events: AsyncIterable<LockEvent>): AsyncGenerator<LockEvent, void, undefined> {
    for await (const event of events) {
      yield { ...event, state: this.withLocalState(event.state) };
    }
  }

  #withLocalWaiters(
    { holders, waiters, waiterCount }: LockState,
    queues: readonly LocalQueue<LeaseState>[],
    isFirst: boolean,
  ): Pick<LockState, "waiters" | "waiterCount"> {
    const waitingCount = queues.reduce((sum, queue) => sum + queue.localWaiterCount, 0);
    const [localOffset, engineOffset] = isFirst
      ? [0, waitingCount]
      : [waiterCount - localWaitersOf(holders), 0];
    const local: Waiter[] = [];
    for (const queue of queues) {
      for (const caller of queue.waiting) {
        if (localOffset + local.length >= maxWaitersShown) {
          break;
        }
        local.push({ ...caller.describe(), position: localOffset + local.length });
      }
    }
    const remote = waiters.map((waiter) => ({ ...waiter, position: engineOffset + waiter.position }));
    return {
      waiters: (isFirst ? [...local, ...remote] : [...remote, ...local]).slice(0, maxWaitersShown),
      waiterCount: waiterCount + waitingCount,
    };
  }

  /** Whether the holder with this number has handed the lease on in memory, which the engine may not know yet. */
  wasHandedOver(key: string, fencingToken: bigint): boolean {
    return this.#heldLeases(key).some(
      (leaseState) =>
        ownsFencingToken(leaseState, { fencingToken }) && fencingToken < leaseState.fencingToken,
    );
  }

  /** Whether a lease of this process with this number holds the key, by the engine's word; `unknown`: it has none with it. */
  async compareFence(key: string, fencingToken: bigint): Promise<FenceState> {
    const own = (this.watchdog.targets() as LeaseState[]).find(
      (leaseState) => leaseState.key === key && leaseState.fencingToken === fencingToken && leaseState.isHeld,
    );
    if (!own) {
      return this.wasHandedOver(key, fencingToken) ? "stale" : "unknown";
    }
    const { token, fencingToken: first } = own.grant;
    const { outcome } = await this.driver.verify(key, token, first);
    return outcome === "held" && own.isHeld ? "current" : "stale";
  }

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

  /** A grant that came when its caller did not want it any more. */
  abandonGrant({ key, token, validity }: Grant): void {
    const released = this.driver.release(key, token, engineExpiry(validity)).catch(() => false);
    this.#abandonedReleases.add(released);
    void released.then(() => this.#abandonedReleases.delete(released));
  }

  leaseEnded(leaseState: LeaseState): void {
    this.#queueFor(leaseState.key, leaseState.lockMode)?.leaseEnded(leaseState);
  }

  #queueFor(key: string, lockMode: LockMode | undefined): LocalQueue<LeaseState> | undefined {
    return this.#queues.get(key)?.queueFor(lockMode);
  }

  /** What may be handed over, and is held. */
  #heldLeases(key: string): LeaseState[] {
    const queues = this.#queues.get(key)?.queues ?? [];
    return queues
      .flatMap(({ held: leaseStates }) => [...leaseStates])
      .filter((leaseState) => leaseState.isHeld);
  }

  /** Waits for a request that the caller's signal, or `close()`, may end. A grant that races the end is declined. */
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

  /** @param token null: all grants */
  markLost(token: string | null, reason: LossReason, cause?: unknown): void {
    for (const leaseState of this.watchdog.targets() as LeaseState[]) {
      if (token === null || leaseState.grant.token === token) {
        leaseState.markLost(reason, cause);
      }
    }
  }

  /** The engine could not tell us of losses for a while. */
  verifyAll(): void {
    for (const leaseState of this.watchdog.targets() as LeaseState[]) {
      void leaseState.verify();
    }
  }

  /** Ends all waiting and releases what is held; what is not done by `closeTimeoutMs` expires. */
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
  }
}

/** Whether the number that the engine has of a holder belongs to the grant of a hold. */
function ownsFencingToken(
  leaseState: LeaseState | undefined,
  { fencingToken }: Partial<Holder> = {},
): boolean {
  const { fencingToken: first = 0n, fencingCount = 0 } = leaseState?.grant ?? {};
  return fencingToken !== undefined && first <= fencingToken && fencingToken < first + BigInt(fencingCount);
}

/** The state without what some of its holders reported of callers in memory. */
function withoutReportedWaiters(state: LockState, isOwn: readonly boolean[]): LockState {
  const { holders, waiterCount } = state;
  const reported = localWaitersOf(holders.filter((_, index) => isOwn[index]));
  return reported === 0
    ? state
    : lockState({
        ...state,
        holders: holders.map((holder, index) => {
          const { localWaiters, ...rest } = holder;
          return isOwn[index] === true || localWaiters === undefined ? rest : holder;
        }),
        waiterCount: waiterCount - reported,
      });
}

/** The holders of the state, those described by a newer hold of the same grant that there is one of. */
function withLocalHolders(
  { holders, fencingToken }: LockState,
  newerLeases: readonly (LeaseState | undefined)[],
): Pick<LockState, "holders" | "fencingToken"> {
  const described = holders.map((holder, index) => {
    const { permits } = holder;
    const leaseState = newerLeases[index];
    return leaseState ? { ...leaseState.describe(), ...(permits === undefined ? {} : { permits }) } : holder;
  });
  const numbers = described.map((holder) => holder.fencingToken ?? 0n);
  return {
    holders: described,
    fencingToken: numbers.reduce((max, each) => (each > max ? each : max), fencingToken ?? 0n),
  };
}
