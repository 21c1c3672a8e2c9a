import { whenAborted } from "../runtime/abort-listeners.ts";
import type { Contention } from "../local/coordinator.ts";
import { LockError } from "../errors.ts";
import type { OwnedLease } from "../lease/lease.ts";
import type { ResolvedAcquire } from "../options.ts";
import { Nest } from "./reentrant-hold.ts";

type Wish = Pick<ResolvedAcquire, "waitMs" | "signal">;

/** Asks the engine: resolves with null where another holds the lock. */
type Begin = (wish: Wish) => Promise<OwnedLease | null>;

/** Caller of one name. */
interface Asker<L> {
  readonly begin: Begin;
  readonly wish: Wish;
  readonly isTry: boolean;
  /** On the scale of `clock.now()`. */
  readonly deadline: number;
  /** Null: the lock was not granted in time. */
  settle(lease: L | null): void;
  fail(reason: unknown): void;
  isSettled: boolean;
}

/** What one name has: a lease, or a caller that asks for it and others that wait for the answer. */
interface Entry<L> {
  /** Weak, so that a forgotten lease is found out. */
  nest: WeakRef<Nest> | undefined;
  leader: Asker<L> | undefined;
  readonly followers: Set<Asker<L>>;
}

/** How many entries may stay behind until the next sweep. */
const fewEntries = 64;

/**
 * Callers of one name share one lease. At most one of them asks the engine at a time; its grant is given to all who wait for it.
 * If it fails, the next caller asks, with its own patience.
 */
export class Joint<L> {
  readonly #contention: Contention;
  readonly #leaseOn: (nest: Nest) => L;
  readonly #entries = new Map<string, Entry<L>>();
  #sweepAt = fewEntries;

  /** @param leaseOn makes a lease that is counted in the nest */
  constructor(contention: Contention, leaseOn: (nest: Nest) => L) {
    this.#contention = contention;
    this.#leaseOn = leaseOn;
  }

  /** Waits for `waitMs`; null: the lock was not granted in that time. Rejects with the signal's reason, `closed`, or what the engine says. */
  acquire(name: string, wish: Wish, begin: Begin): Promise<L | null> {
    return this.#ask(name, wish, begin, false);
  }

  /** The same at once. It waits for the answer to another try, and for no other caller. */
  try(name: string, wish: Wish, begin: Begin): Promise<L | null> {
    return this.#ask(name, { ...wish, waitMs: 0 }, begin, true);
  }

  async #ask(name: string, wish: Wish, begin: Begin, isTry: boolean): Promise<L | null> {
    const entry = this.#entryOf(name);
    const nest = entry.nest?.deref();
    if (nest && !nest.isOver && !nest.isOrphaned) {
      return this.#leaseOn(nest);
    } else if (entry.leader && !entry.leader.isTry && wish.waitMs === 0) {
      return null;
    } else if (entry.followers.size >= this.#contention.options.maxWaiters) {
      const message = `${entry.followers.size} callers of this process already wait for the same attempt`;
      throw new LockError(message, { code: "too-many-waiters", retryable: true });
    }
    return new Promise<L | null>((resolve, reject) => {
      const asker = this.#asker(entry, { begin, wish, isTry }, resolve, reject);
      if (entry.leader) {
        entry.followers.add(asker);
      } else {
        this.#lead(name, entry, asker);
      }
    });
  }

  #asker(
    entry: Entry<L>,
    { begin, wish, isTry }: Pick<Asker<L>, "begin" | "wish" | "isTry">,
    resolve: (lease: L | null) => void,
    reject: (reason: Error) => void,
  ): Asker<L> {
    const { clock, closing } = this.#contention;
    const { waitMs, signal } = wish;
    const end = (settle: () => void): void => {
      if (!asker.isSettled) {
        asker.isSettled = true;
        entry.followers.delete(asker);
        clock.clearTimer(timer);
        stops.forEach((stop) => stop());
        settle();
      }
    };
    const refuse = (reason: unknown): void => {
      // The leader's own request settles it: a grant that races the end has to be given back first.
      if (isTry || entry.leader !== asker) {
        asker.fail(reason);
      }
    };
    const asker: Asker<L> = {
      begin,
      wish,
      isTry,
      deadline: clock.now() + waitMs,
      settle: (lease) => end(() => resolve(lease)),
      fail: (reason) => end(() => reject(reason as Error)),
      isSettled: false,
    };
    const stops = [closing, ...(signal ? [signal] : [])].map((source) => whenAborted(source, refuse));
    const giveUp = (): void => {
      if (entry.leader !== asker) {
        asker.settle(null);
      }
    };
    const timer = isTry ? undefined : clock.setTimer(giveUp, Math.min(waitMs, longMs), true); // a caller waits for it
    return asker;
  }

  /** A try asks for all who try meanwhile: the signal of one of them does not end it. */
  #lead(name: string, entry: Entry<L>, asker: Asker<L>): void {
    entry.leader = asker;
    const { wish, deadline, isTry, begin } = asker;
    const waitMs = isTry ? 0 : Math.max(0, deadline - this.#contention.clock.now());
    begin({ waitMs, signal: isTry ? undefined : wish.signal })
      .then(
        (base) => this.#answered(name, entry, asker, base),
        (error: unknown) => {
          for (const each of this.#companions(entry, asker)) {
            each.fail(error);
          }
        },
      )
      .finally(() => this.#goOn(name, entry));
  }

  #answered(name: string, entry: Entry<L>, leader: Asker<L>, base: OwnedLease | null): void {
    if (!base) {
      for (const each of this.#companions(entry, leader)) {
        each.settle(null);
      }
      return;
    }
    const nest = new Nest(this.#contention, base, name);
    nest.ended = () => this.#forgetIfIdle(name, entry);
    entry.nest = new WeakRef(nest);
    const wanted = [leader, ...entry.followers].filter(({ isSettled }) => !isSettled);
    const leases = wanted.map(() => this.#leaseOn(nest)); // all are counted before the first is used
    wanted.forEach((each, index) => each.settle(leases[index] as L));
    if (wanted.length === 0) {
      base.release().catch(() => false); // it goes on in the background
    }
  }

  /** Callers that the answer to this one is for as well: of a try, those that try. */
  #companions(entry: Entry<L>, leader: Asker<L>): readonly Asker<L>[] {
    return [leader, ...(leader.isTry ? entry.followers : [])].filter((each) => each === leader || each.isTry);
  }

  #goOn(name: string, entry: Entry<L>): void {
    entry.leader = undefined;
    const [next] = entry.followers;
    if (next) {
      entry.followers.delete(next);
      this.#lead(name, entry, next);
    } else {
      this.#forgetIfIdle(name, entry);
    }
  }

  #entryOf(name: string): Entry<L> {
    this.#sweep();
    const entry = this.#entries.get(name) ?? { nest: undefined, leader: undefined, followers: new Set() };
    this.#entries.set(name, entry);
    return entry;
  }

  /** No call ends the entry of a lease that was orphaned, transferred or forgotten. */
  #sweep(): void {
    if (this.#entries.size >= this.#sweepAt) {
      for (const [name, entry] of this.#entries) {
        this.#forgetIfIdle(name, entry);
      }
      this.#sweepAt = Math.max(fewEntries, 2 * this.#entries.size);
    }
  }

  #forgetIfIdle(name: string, entry: Entry<L>): void {
    const isHeld = entry.nest?.deref()?.isOver === false;
    if (!isHeld && !entry.leader && entry.followers.size === 0 && this.#entries.get(name) === entry) {
      this.#entries.delete(name);
    }
  }
}

/** A timer of Node's is for 24 days at most. */
const longMs = 86_400_000 * 24;
