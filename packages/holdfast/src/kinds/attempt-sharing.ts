import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { isLockError, LeaseLostError, LockError, WaitTimeoutError, type LossReason } from "../errors.ts";
import {
  BaseLease,
  lossControllerOf,
  type InternalLease,
  type Lease,
  type SerializedLease,
} from "../lease/lease.ts";
import type { ResolvedAcquire } from "../options.ts";

/** One lease at the engine, and the number of leases that share it. */
export class ReentrantHold {
  readonly coordinator: LocalCoordinator;
  readonly base: InternalLease;
  /** The name by which callers may join this hold; undefined: no caller may join. */
  readonly name: string | undefined;
  /** Called when the last of its leases has been released. */
  ended: () => void = () => undefined;
  /** The base is left to expire, so no lease may join, because the lease would not be renewed. */
  isOrphaned = false;
  count = 0;

  constructor(coordinator: LocalCoordinator, base: InternalLease, name?: string) {
    this.coordinator = coordinator;
    this.base = base;
    this.name = name;
  }

  /** Whether all leases are released, or the base is lost. A late reply to a renewal never revives a lost lease. */
  get isEnded(): boolean {
    return this.count === 0 || this.base.currentLoss() !== undefined || this.base.remainingMs() === 0;
  }

  /** Ends one lease. The end of the last lease releases the base. */
  async exit(): Promise<boolean> {
    this.count -= 1;
    if (this.count > 0) {
      return this.base.remainingMs() > 0;
    }
    try {
      return await this.base.release();
    } finally {
      this.ended();
    }
  }
}

/** A lease that shares its base with other leases of this process. The last release frees the lock. */
export class NestedLease extends BaseLease implements InternalLease {
  readonly hold: ReentrantHold;
  #controller: AbortController | undefined;
  #stopListening: () => void = () => undefined;
  #releasing: Promise<boolean> | undefined;

  constructor(hold: ReentrantHold) {
    super();
    this.hold = hold;
    hold.count += 1;
  }

  get isEnded(): boolean {
    return this.#releasing !== undefined;
  }

  get key(): string {
    return this.#base.key;
  }

  get keys(): readonly string[] {
    return this.#base.keys;
  }

  get owner(): string {
    return this.#base.owner;
  }

  get fencingToken(): bigint {
    return this.#base.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, bigint> {
    return this.#base.fencingTokens;
  }

  get validUntil(): number {
    return this.#base.validUntil;
  }

  /** The signal of the base, until this lease is released. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = lossControllerOf(this);
      this.#controller = controller;
      const { signal } = this.#base;
      if (signal.aborted) {
        controller.abort(signal.reason);
      } else if (!this.isEnded) {
        this.#stopListening = onAbort(signal, (reason) => controller.abort(reason));
      }
    }
    return this.#controller.signal;
  }

  get isTransferred(): boolean {
    return this.#base.isTransferred;
  }

  currentLoss(): LossReason | undefined {
    return this.#base.currentLoss();
  }

  get isLost(): boolean {
    return this.isEnded || this.#base.isLost;
  }

  remainingMs(): number {
    return this.isEnded ? 0 : this.#base.remainingMs();
  }

  throwIfLost(): void {
    this.#base.throwIfLost();
    if (this.isEnded) {
      throw new LeaseLostError(this.key, "released", this.hold.coordinator.clock.wall());
    }
  }

  async extend(ttlMs?: number): Promise<void> {
    this.throwIfLost();
    await this.#base.extend(ttlMs);
  }

  release(): Promise<boolean> {
    if (!this.#releasing) {
      this.#stopListening();
      this.#releasing = this.hold.exit();
    }
    return this.#releasing;
  }

  /** Orphans all leases that share the base. */
  orphan(): void {
    this.hold.isOrphaned = true;
    this.#base.orphan();
  }

  transfer(): SerializedLease {
    if (this.hold.count > 1) {
      const message = `"${this.key}" is held ${this.hold.count} times in this process; release the other leases before a transfer`;
      throw new LockError(message, { code: "unsupported", key: this.key });
    }
    this.throwIfLost();
    return this.#base.transfer();
  }

  get #base(): InternalLease {
    return this.hold.base;
  }
}

/** A lease of an attempt with an `attemptId`. Repeats of the attempt share its grant. */
export class JoinedLease extends NestedLease {
  /** @throws {LockError} `unsupported`: a repeat may write with the same grant */
  downgrade(): Promise<Lease> {
    const message = `A repeat of the same attempt may have the lease of "${this.key}"; it cannot be downgraded`;
    return Promise.reject(new LockError(message, { code: "unsupported", key: this.key }));
  }
}

type WaitOptions = Pick<ResolvedAcquire, "waitMs" | "signal"> & {
  /** Called when the caller begins to wait for another caller. */
  readonly onFollow?: () => void;
};

/** Requests a lease from the engine. Resolves with null if another holder has the lock. */
type RequestLease = (wait: WaitOptions) => Promise<InternalLease | null>;

/** A caller of one name. */
interface Caller<L> {
  readonly requestLease: RequestLease;
  readonly wait: WaitOptions;
  readonly isTry: boolean;
  /** The end of its wait, on the scale of `clock.now()`. */
  readonly deadline: number;
  /** Null: the lock was not granted in time. */
  settle(lease: L | null): void;
  fail(reason: unknown): void;
  isSettled: boolean;
  /** The last result of an earlier caller that the lock is held, and its time on the scale of `clock.now()`. */
  heldResult: { readonly error: WaitTimeoutError; readonly at: number } | undefined;
}

/** The state of one name: its lease, or a leader that requests the lease and followers that wait for the result. */
interface Entry<L> {
  /** Weak, so that a leaked lease is detected. */
  hold: WeakRef<ReentrantHold> | undefined;
  leader: Caller<L> | undefined;
  readonly followers: Set<Caller<L>>;
}

/** The greatest age of an earlier caller's result at the deadline of the caller that gets the same result. */
const maxHeldAgeMs = 250;

/** The number of entries at the first sweep of idle entries. */
const minSweepSize = 64;

/**
 * Lets callers of one name share one lease. At most one of them, the leader, requests the lock at a time, and all waiting callers
 * share its grant. If the leader fails, the next caller requests the lock, until its own deadline.
 */
export class AttemptSharing<L> {
  readonly #coordinator: LocalCoordinator;
  readonly #createLease: (hold: ReentrantHold) => L;
  readonly #entries = new Map<string, Entry<L>>();
  #sweepAt = minSweepSize;

  /** @param createLease creates a lease that the hold counts */
  constructor(coordinator: LocalCoordinator, createLease: (hold: ReentrantHold) => L) {
    this.#coordinator = coordinator;
    this.#createLease = createLease;
  }

  /** Resolves with null if the lock is not granted within `waitMs`. Rejects with the signal's reason, `closed`, or the engine's error. */
  acquire(name: string, wait: WaitOptions, requestLease: RequestLease): Promise<L | null> {
    return this.#join(name, wait, requestLease, false);
  }

  /** Tries once. A try waits for the result of another try, but not for a caller that waits for the lock. */
  try(name: string, wait: WaitOptions, requestLease: RequestLease): Promise<L | null> {
    return this.#join(name, { ...wait, waitMs: 0 }, requestLease, true);
  }

  async #join(
    name: string,
    wait: WaitOptions,
    requestLease: RequestLease,
    isTry: boolean,
  ): Promise<L | null> {
    const entry = this.#entryOf(name);
    const hold = entry.hold?.deref();
    if (hold && !hold.isEnded && !hold.isOrphaned) {
      return this.#createLease(hold);
    } else if (entry.leader && !entry.leader.isTry && wait.waitMs === 0) {
      return null;
    } else if (entry.followers.size >= this.#coordinator.options.maxWaiters) {
      const message = `${entry.followers.size} callers of this process already wait for the same attempt; the limit is \`maxWaiters\``;
      throw new LockError(message, { code: "too-many-waiters", retryable: true });
    }
    return new Promise<L | null>((resolve, reject) => {
      const caller = this.#createCaller(entry, { requestLease, wait, isTry }, resolve, reject);
      if (entry.leader) {
        entry.followers.add(caller);
        wait.onFollow?.();
      } else {
        this.#lead(name, entry, caller);
      }
    });
  }

  #createCaller(
    entry: Entry<L>,
    { requestLease, wait, isTry }: Pick<Caller<L>, "requestLease" | "wait" | "isTry">,
    resolve: (lease: L | null) => void,
    reject: (reason: Error) => void,
  ): Caller<L> {
    const { clock, closing } = this.#coordinator;
    const { waitMs, signal } = wait;
    const end = (settle: () => void): void => {
      if (!caller.isSettled) {
        caller.isSettled = true;
        entry.followers.delete(caller);
        clock.clearTimer(timer);
        stops.forEach((stop) => stop());
        settle();
      }
    };
    const rejectUnlessLeading = (reason: unknown): void => {
      // The leader's own request settles the leader, because a grant that races the abort must be released first.
      if (isTry || entry.leader !== caller) {
        caller.fail(reason);
      }
    };
    const caller: Caller<L> = {
      requestLease,
      wait,
      isTry,
      deadline: clock.now() + waitMs,
      settle: (lease) => end(() => resolve(lease)),
      fail: (reason) => end(() => reject(reason as Error)),
      isSettled: false,
      heldResult: undefined,
    };
    const stops = [closing, ...(signal ? [signal] : [])].map((source) =>
      onAbort(source, rejectUnlessLeading),
    );
    const timeOut = (): void => {
      if (entry.leader !== caller) {
        caller.settle(null);
      }
    };
    const timer = isTry ? undefined : clock.setTimer(timeOut, Math.min(waitMs, maxTimerMs), true); // a caller waits
    return caller;
  }

  /** The request of a try serves all concurrent tries, so the signal of one of them does not abort the request. */
  #lead(name: string, entry: Entry<L>, caller: Caller<L>): void {
    entry.leader = caller;
    const { wait, deadline, isTry, requestLease } = caller;
    const waitMs = isTry ? 0 : Math.max(0, deadline - this.#coordinator.clock.now());
    requestLease({ waitMs, signal: isTry ? undefined : wait.signal })
      .then(
        (base) => this.#leaderSettled(name, entry, caller, base),
        (error: unknown) => this.#leaderFailed(entry, caller, error),
      )
      .finally(() => this.#nextLeader(name, entry));
  }

  #leaderSettled(name: string, entry: Entry<L>, leader: Caller<L>, base: InternalLease | null): void {
    if (!base) {
      for (const companion of this.#companions(entry, leader)) {
        companion.settle(null);
      }
      return;
    }
    const hold = new ReentrantHold(this.#coordinator, base, name);
    hold.ended = () => this.#deleteIfIdle(name, entry);
    entry.hold = new WeakRef(hold);
    const waiting = [leader, ...entry.followers].filter(({ isSettled }) => !isSettled);
    const leases = waiting.map(() => this.#createLease(hold)); // count all leases before the first caller can release its lease
    waiting.forEach((companion, index) => companion.settle(leases[index] as L));
    if (waiting.length === 0) {
      base.release().catch(() => false); // the engine retries in the background
    }
  }

  /**
   * A caller that waited for an earlier caller may begin its own request too late for a reply of the engine. If the lock was held for
   * the earlier caller, this caller gets the same result, because the engine is not at fault.
   */
  #leaderFailed(entry: Entry<L>, leader: Caller<L>, error: unknown): void {
    const now = this.#coordinator.clock.now();
    if (error instanceof WaitTimeoutError) {
      for (const follower of entry.followers) {
        follower.heldResult = { error, at: now };
      }
    }
    const { deadline, heldResult, wait } = leader;
    const isOutOfTime = isLockError(error) && error.retryable && now >= deadline;
    if (isOutOfTime && heldResult && deadline - heldResult.at <= maxHeldAgeMs) {
      const { key, holder, position } = heldResult.error;
      leader.fail(new WaitTimeoutError(key as string, wait.waitMs, holder, position));
      return;
    }
    for (const companion of this.#companions(entry, leader)) {
      companion.fail(error);
    }
  }

  /** The leader, and the callers that share its result. The result of a try is shared by the other tries. */
  #companions(entry: Entry<L>, leader: Caller<L>): readonly Caller<L>[] {
    return [leader, ...(leader.isTry ? entry.followers : [])].filter(
      (companion) => companion === leader || companion.isTry,
    );
  }

  #nextLeader(name: string, entry: Entry<L>): void {
    entry.leader = undefined;
    const [next] = entry.followers;
    if (next) {
      entry.followers.delete(next);
      this.#lead(name, entry, next);
    } else {
      this.#deleteIfIdle(name, entry);
    }
  }

  #entryOf(name: string): Entry<L> {
    this.#sweep();
    const entry = this.#entries.get(name) ?? { hold: undefined, leader: undefined, followers: new Set() };
    this.#entries.set(name, entry);
    return entry;
  }

  /** Deletes the entries of leases that were orphaned, transferred or leaked, because no call deletes them. */
  #sweep(): void {
    if (this.#entries.size >= this.#sweepAt) {
      for (const [name, entry] of this.#entries) {
        this.#deleteIfIdle(name, entry);
      }
      this.#sweepAt = Math.max(minSweepSize, 2 * this.#entries.size);
    }
  }

  #deleteIfIdle(name: string, entry: Entry<L>): void {
    const isHeld = entry.hold?.deref()?.isEnded === false;
    if (!isHeld && !entry.leader && entry.followers.size === 0 && this.#entries.get(name) === entry) {
      this.#entries.delete(name);
    }
  }
}

/** The limit of a timer of Node.js is 24.8 days. */
const maxTimerMs = 86_400_000 * 24;
