import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { isLockError, LockError, WaitTimeoutError } from "../errors.ts";
import type { InternalLease } from "../lease/lease.ts";
import type { ResolvedAcquire } from "../options.ts";
import { ReentrantHold } from "./reentrant-hold.ts";

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
export class SharedAcquire<L> {
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
