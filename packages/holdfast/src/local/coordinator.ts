import type { Acquisition } from "./acquisition.ts";
import { whenAborted } from "../runtime/abort-listeners.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Acquired, Driver, Grant, Pending, Share } from "../driver.ts";
import { closedError, type LossReason } from "../errors.ts";
import type { Hold, Keeper } from "../lease/lease-state.ts";
import { KeyLines } from "./key-queues.ts";
import type { Line } from "./local-queue.ts";
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
import { Pool } from "../runtime/unordered-set.ts";
import { TimerQueue } from "../runtime/timer-queue.ts";
import { engineEnd } from "../validity.ts";
import { within } from "../runtime/timeout.ts";
import { Watchdog } from "../lease/watchdog.ts";

/** So many waiters are described; all are counted. */
const mostShown = 100;
/** So many lines are kept, also of keys that nobody uses any more: most are used again. */
const fewLines = 1_000;

/** What the callers of one `Locks` share: the lines before its keys, who waits, and who is held. */
export class Contention implements Keeper {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly options: ResolvedLocks;
  readonly watchdog: Watchdog;
  readonly acquisitions: Pool<Acquisition> = new Pool();
  /** The deadlines of those who wait in a local line: somebody waits for these timers. */
  readonly waits: TimerQueue<Acquisition>;
  readonly usesLines: boolean;
  readonly #closing = new AbortController();
  readonly #givenUp = new Set<Promise<boolean>>();
  #lines = new Map<string, KeyLines<Hold>>();
  #mostLines = fewLines;

  constructor(driver: Driver, options: ResolvedLocks) {
    this.driver = driver;
    this.clock = driver.clock;
    this.options = options;
    this.watchdog = new Watchdog(driver.clock, driver.random);
    this.waits = new TimerQueue(
      driver.clock,
      (acquisition) => {
        acquisition.timeOut();
      },
      true,
    );
    const { requeue, fencingBlocks } = driver.capabilities;
    this.usesLines = options.handover !== false && requeue && fencingBlocks;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** @throws {LockError} `closed` */
  refuseClosed(key?: string): void {
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

  linesOf(key: string): KeyLines<Hold> {
    let lines = this.#lines.get(key);
    if (!lines) {
      if (this.#lines.size >= this.#mostLines) {
        this.#lines = new Map([...this.#lines].filter(([, { isEmpty }]) => !isEmpty));
        this.#mostLines = Math.max(fewLines, 2 * this.#lines.size);
      }
      lines = new KeyLines();
      this.#lines.set(key, lines);
    }
    return lines;
  }

  /** Whether callers of this process wait in memory for the same of the key, or have all that there is of it. */
  isContended(key: string, share: Share | undefined): boolean {
    const line = this.#lineOf(key, share);
    return line !== undefined && (line.waitingCount > 0 || line.isFull);
  }

  /** Who of this process holds the key for itself alone, as far as the line knows. */
  holderOf(key: string): Hold | undefined {
    const holder = this.#lines.get(key)?.mutex.holder;
    return holder?.isHeld === true ? holder : undefined;
  }

  /**
   * What the engine says, corrected by what only this process knows: which caller was handed a lease in memory, and the callers that
   * wait in memory. Those come first where this process holds the lock and may hand it over, else behind the ones at the engine.
   * The engine may have a report of them from a holder of this process: they are not counted twice.
   */
  correct(given: LockState): LockState {
    const lines = this.#lines.get(given.key)?.all;
    if (!lines) {
      return given;
    }
    const holds = this.#holdsOf(given.key);
    const reporters = lines.map(({ reporter }) => reporter);
    const newer = given.holders.map((told) =>
      holds.find((hold) => hasNumberOf(hold, told) && hold.fencingToken > (told.fencingToken ?? 0n)),
    );
    const isNews = newer.some((hold) => hold !== undefined);
    const waitingCount = lines.reduce((sum, line) => sum + line.waitingCount, 0);
    const isOwn = given.holders.map((told) =>
      [...holds, ...reporters].some((hold) => hasNumberOf(hold, told)),
    );
    const state = withoutReports(given, isOwn);
    return isNews || waitingCount > 0
      ? lockState({
          ...state,
          ...(isNews && withHolds(state, newer)),
          ...this.#withOwnWaiters(state, lines, holds.length > 0),
        })
      : state;
  }

  /** For the engine: how many callers wait in memory for a hold. The report of a grant is repeated until the grant ends. */
  reportWaiters(hold: Hold): number | undefined {
    const line = this.#lineOf(hold.key, hold.share);
    const waiting = line?.holder === hold ? line.waitingCount : 0;
    if (line && waiting > 0) {
      line.reporter = hold;
    }
    return line?.reporter?.grant === hold.grant ? waiting : undefined;
  }

  /** Changes of the engine's state, each corrected when it is read. */
  async *correctAll(events: AsyncIterable<LockEvent>): AsyncGenerator<LockEvent, void, undefined> {
    for await (const event of events) {
      yield { ...event, state: this.correct(event.state) };
    }
  }

  #withOwnWaiters(
    { holders, waiters, waiterCount }: LockState,
    lines: readonly Line<Hold>[],
    isFirst: boolean,
  ): Pick<LockState, "waiters" | "waiterCount"> {
    const waitingCount = lines.reduce((sum, line) => sum + line.waitingCount, 0);
    const [ownFrom, othersFrom] = isFirst ? [0, waitingCount] : [waiterCount - localWaitersOf(holders), 0];
    const own: Waiter[] = [];
    for (const line of lines) {
      for (const caller of line.waiting) {
        if (ownFrom + own.length >= mostShown) {
          break;
        }
        own.push({ ...caller.describe(), position: ownFrom + own.length });
      }
    }
    const others = waiters.map((waiter) => ({ ...waiter, position: othersFrom + waiter.position }));
    return {
      waiters: (isFirst ? [...own, ...others] : [...others, ...own]).slice(0, mostShown),
      waiterCount: waiterCount + waitingCount,
    };
  }

  /** Whether the holder with this number has handed the lease on in memory, which the engine may not know yet. */
  handedOnFrom(key: string, fencingToken: bigint): boolean {
    return this.#holdsOf(key).some(
      (hold) => hasNumberOf(hold, { fencingToken }) && fencingToken < hold.fencingToken,
    );
  }

  /** Whether a lease of this process with this number holds the key, by the engine's word; `unknown`: it has none with it. */
  async judgeFence(key: string, fencingToken: bigint): Promise<FenceState> {
    const own = (this.watchdog.targets() as Hold[]).find(
      (hold) => hold.key === key && hold.fencingToken === fencingToken && hold.isHeld,
    );
    if (!own) {
      return this.handedOnFrom(key, fencingToken) ? "stale" : "unknown";
    }
    const { token, fencingToken: first } = own.grant;
    const { outcome } = await this.driver.verify(key, token, first);
    return outcome === "held" && own.isHeld ? "current" : "stale";
  }

  giveBack(hold: Hold): Promise<boolean> {
    const { handover } = this.options;
    const line = this.#lineOf(hold.key, hold.share);
    if (line && handover) {
      const leaving = line.release(hold, this.clock.now(), handover);
      if (leaving.to === "caller") {
        return Promise.resolve(true);
      }
      if (leaving.to === "others" && leaving.released) {
        return leaving.released;
      }
    }
    const { key, grant, validity } = hold;
    return this.driver.release(key, grant.token, engineEnd(validity));
  }

  /** A grant that came when its caller did not want it any more. */
  decline({ key, token, validity }: Grant): void {
    const released = this.driver.release(key, token, engineEnd(validity)).catch(() => false);
    this.#givenUp.add(released);
    void released.then(() => this.#givenUp.delete(released));
  }

  ended(hold: Hold): void {
    this.#lineOf(hold.key, hold.share)?.ended(hold);
  }

  #lineOf(key: string, share: Share | undefined): Line<Hold> | undefined {
    return this.#lines.get(key)?.of(share);
  }

  /** What may be handed over, and is held. */
  #holdsOf(key: string): Hold[] {
    const lines = this.#lines.get(key)?.all ?? [];
    return lines.flatMap(({ holds }) => [...holds]).filter((hold) => hold.isHeld);
  }

  /** Waits for a request that the caller's signal, or `close()`, may end. A grant that races the end is declined. */
  async cancellable(pending: Pending, { signal }: Pick<ResolvedAcquire, "signal">): Promise<Acquired> {
    const stopListening = signal && whenAborted(signal, pending.cancel.bind(pending));
    try {
      const acquired = await pending.result;
      if (acquired.outcome === "granted" && (this.isClosed || signal?.aborted === true)) {
        this.decline(acquired.grant);
        throw this.isClosed ? closedError(acquired.grant.key) : signal?.reason;
      }
      return acquired;
    } finally {
      stopListening?.();
    }
  }

  /** @param token null: all grants */
  lose(token: string | null, reason: LossReason, cause?: unknown): void {
    for (const hold of this.watchdog.targets() as Hold[]) {
      if (token === null || hold.grant.token === token) {
        hold.lose(reason, cause);
      }
    }
  }

  /** The engine could not tell us of losses for a while. */
  verify(): void {
    for (const hold of this.watchdog.targets() as Hold[]) {
      void hold.verify();
    }
  }

  /** Ends all waiting and releases what is held; what is not done by `closeTimeoutMs` expires. */
  async close(): Promise<void> {
    this.#closing.abort(closedError());
    for (const acquisition of Array.from(this.acquisitions.items)) {
      acquisition.cancel(closedError());
    }
    const holds = (this.watchdog.targets() as Hold[]).filter((hold) => !hold.isOrphaned);
    const releases = Promise.all([
      ...holds.map((hold) => hold.releaseAtClose().catch(() => false)),
      ...this.#givenUp,
    ]);
    await within(this.clock, this.options.closeTimeoutMs, releases);
    for (const hold of holds) {
      hold.orphan();
    }
  }
}

/** Whether the number that the engine has of a holder belongs to the grant of a hold. */
function hasNumberOf(hold: Hold | undefined, { fencingToken }: Partial<Holder> = {}): boolean {
  const { fencingToken: first = 0n, fencingCount = 0 } = hold?.grant ?? {};
  return fencingToken !== undefined && first <= fencingToken && fencingToken < first + BigInt(fencingCount);
}

/** The state without what some of its holders reported of callers in memory. */
function withoutReports(state: LockState, isOwn: readonly boolean[]): LockState {
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
function withHolds(
  { holders, fencingToken }: LockState,
  newer: readonly (Hold | undefined)[],
): Pick<LockState, "holders" | "fencingToken"> {
  const described = holders.map((told, index) => {
    const { permits } = told;
    const hold = newer[index];
    return hold ? { ...hold.describe(), ...(permits === undefined ? {} : { permits }) } : told;
  });
  const numbers = described.map((holder) => holder.fencingToken ?? 0n);
  return {
    holders: described,
    fencingToken: numbers.reduce((greatest, each) => (each > greatest ? each : greatest), fencingToken ?? 0n),
  };
}
