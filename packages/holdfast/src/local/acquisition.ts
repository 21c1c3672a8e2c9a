import type { Timed } from "../runtime/timer-queue.ts";
import { whenAborted } from "../runtime/abort-listeners.ts";
import type { Contention } from "./coordinator.ts";
import { tell } from "../diagnostics.ts";
import type { Acquired, AcquireRequest, Pending, Share, Together } from "../driver.ts";
import { closedError, EngineError, LockError, QuorumError, WaitTimeoutError } from "../errors.ts";
import { Hold, type Kept } from "../lease/lease-state.ts";
import type { KeyLines } from "./key-queues.ts";
import type { HeldLease } from "../lease/lease.ts";
import type { Caller, Line } from "./local-queue.ts";
import type { ResolvedAcquire } from "../options.ts";
import { nowhere, type Pooled } from "../runtime/unordered-set.ts";
import { Link } from "../runtime/linked-queue.ts";
import type { Waiter } from "../lock-state.ts";
import { leftOf } from "../validity.ts";

/**
 * One acquisition that may wait: from options through the local line and the driver to a lease.
 * Rejects with a `WaitTimeoutError`, the signal's reason, `closed`, `too-many-waiters`, or what the engine said.
 */
export function acquireLease(
  contention: Contention,
  key: string,
  options: ResolvedAcquire,
): Promise<HeldLease> {
  const lines = contention.linesOf(key);
  if (lines.length >= contention.options.maxWaiters) {
    const message = `${lines.length} callers of this process already wait for "${key}"`;
    return Promise.reject(new LockError(message, { code: "too-many-waiters", key, retryable: true }));
  }
  return new Acquisition(contention, lines, key, options).begin();
}

/** One try: a lease, or null where another holds the lock. */
export async function tryLease(
  contention: Contention,
  key: string,
  options: ResolvedAcquire,
): Promise<{ lease: HeldLease } | { held: Extract<Acquired, { outcome: "held" }> }> {
  const { driver } = contention;
  const local = contention.holderOf(key);
  if (local && options.share === undefined) {
    return { held: { outcome: "held", holder: local.describe() } };
  }
  const pending = driver.acquire(requestFor(contention, key, options));
  const acquired = await contention.cancellable(pending, options);
  if (acquired.outcome === "held") {
    return { held: acquired };
  }
  const { hold, lease } = Hold.keep(contention, acquired.grant, options);
  if (standsInLine(contention, options)) {
    contention.linesOf(key).of(options.share).begin(hold, contention.clock.now());
  }
  return { lease };
}

/** Whether the engine can take these keys in one step. */
export function canTakeTogether({ driver }: Contention, keys: readonly string[]): boolean {
  return driver.acquireTogether !== undefined && driver.areTogether?.(keys) !== false;
}

/** Several keys in one step: a lease for each, null where one is held; undefined where the engine has no such step. */
export async function tryTogether(
  contention: Contention,
  keys: readonly string[],
  options: ResolvedAcquire,
): Promise<readonly HeldLease[] | null | undefined> {
  const { driver } = contention;
  if (!driver.acquireTogether) {
    return undefined;
  } else if (keys.some((key) => contention.holderOf(key))) {
    return null;
  }
  const asked = driver.acquireTogether(keys.map((key) => requestFor(contention, key, options)));
  const together = await whileWanted(contention, asked, options);
  if (together.outcome === "held") {
    return null;
  }
  return together.grants.map((grant) => {
    const { hold, lease } = Hold.keep(contention, grant, options);
    if (standsInLine(contention, options)) {
      contention.linesOf(grant.key).mutex.begin(hold, contention.clock.now());
    }
    return lease;
  });
}

/** Waits until the caller's signal, or `close()`, ends it. What is granted nevertheless is declined. */
async function whileWanted(
  contention: Contention,
  asked: Promise<Together>,
  { signal }: ResolvedAcquire,
): Promise<Together> {
  const stops: (() => void)[] = [];
  const ended = new Promise<never>((_resolve, reject) => {
    for (const end of [contention.closing, ...(signal ? [signal] : [])]) {
      stops.push(whenAborted(end, reject));
    }
  });
  const giveBackIfEnded = (together: Together): Together => {
    if ((contention.isClosed || signal?.aborted === true) && together.outcome === "granted") {
      for (const grant of together.grants) {
        contention.decline(grant);
      }
      throw contention.isClosed ? closedError() : signal?.reason;
    }
    return together;
  };
  asked.then(giveBackIfEnded).catch(() => undefined);
  try {
    return giveBackIfEnded(await Promise.race([asked, ended]));
  } finally {
    for (const stop of stops) {
      stop();
    }
  }
}

function requestFor(
  contention: Contention,
  key: string,
  options: ResolvedAcquire,
  turn?: { readonly deadline: number; readonly caller: Acquisition; readonly from: Hold | undefined },
): AcquireRequest {
  const isContended = turn?.from !== undefined || contention.isContended(key, options.share);
  return {
    key,
    share: turn?.caller.share ?? options.share,
    ttlMs: options.ttlMs,
    deadline: turn?.deadline ?? null,
    ticket: turn?.caller.ticket,
    caller: turn?.caller,
    want: isContended ? blockFor(contention, options) : 1,
    words: options.words,
  };
}

/**
 * Numbers for a whole run of hand-overs. A request asks for them only if another caller of this process waits, has the same, or gives
 * up the lock in the same step: that caller often comes again at once. A lone caller has one number, so the engine knows its lease exactly.
 */
function blockFor(contention: Contention, options: ResolvedAcquire): number {
  const { handover } = contention.options;
  return handover && options.renew && standsInLine(contention, options)
    ? Math.min(handover.max, longestRun) + 1
    : 1;
}

/** Readers and writers ask the engine each by itself: a run of readers would keep a writer waiting. */
function standsInLine(contention: Contention, { share }: ResolvedAcquire): boolean {
  return contention.usesLines && share?.kind !== "read-write";
}

/** An engine that does not answer in less than this may be well. */
const shortestAnswerMs = 50;
const longMs = 86_400_000;
/** Blocks of more numbers could run ahead of the engine's clock, which is their floor when it has forgotten them. */
const longestRun = 64;

/** A caller that waits: first in the local line, then at the engine. */
export class Acquisition implements Caller<Hold>, Pooled, Timed {
  dueAt = 0;
  slot = -1;
  place: number = nowhere;
  readonly link: Link<Caller<Hold>> = new Link<Caller<Hold>>(this);
  isContending = false;
  readonly #contention: Contention;
  readonly #lines: KeyLines<Hold>;
  readonly #line: Line<Hold>;
  readonly #key: string;
  readonly #options: ResolvedAcquire;
  readonly #begunAt: number;
  readonly #deadline: number;
  /** Its place in the queue; undefined: that of when it comes there. */
  readonly ticket: number | undefined;
  #contendsSince = 0;
  readonly #standsInLine: boolean;
  #hasWaited = false;
  #pending: Pending | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  #isSettled = false;
  #stopListening: (() => void) | undefined;
  #resolve!: (lease: HeldLease) => void;
  #reject!: (reason: unknown) => void;

  constructor(contention: Contention, lines: KeyLines<Hold>, key: string, options: ResolvedAcquire) {
    this.#contention = contention;
    this.#lines = lines;
    this.#line = lines.of(options.share);
    this.#key = key;
    this.#options = options;
    this.#begunAt = contention.clock.now();
    this.#deadline = this.#begunAt + options.waitMs;
    this.ticket = options.ticket ?? contention.driver.ticket(key);
    this.#standsInLine = standsInLine(contention, options);
  }

  begin(): Promise<HeldLease> {
    const promise = new Promise<HeldLease>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#contention.acquisitions.add(this);
    const { signal } = this.#options;
    if (signal) {
      this.#stopListening = whenAborted(signal, (reason) => this.cancel(reason));
    }
    if (this.#standsInLine) {
      this.#line.join(this);
      if (!this.#pending && !this.#isSettled) {
        this.#hasWaited = true;
        tell("queued", () => ({ key: this.#key, position: this.#line.length - 1 }));
        this.#contention.waits.schedule(this, this.#deadline);
      }
      this.#holdProcess();
    } else {
      this.#lines.outside += 1;
      void this.contend();
      this.#holdProcess();
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
      this.#holdProcess();
      return;
    }
    const holder = this.#line.holder?.describe();
    const place = this.#line.placeOf(this);
    this.#fail(new WaitTimeoutError(this.#key, this.#options.waitMs, holder, place));
  }

  describe(): Omit<Waiter, "position"> {
    const { clock, owner } = this.#contention;
    const since = Math.round(clock.wall() - (clock.now() - this.#begunAt));
    return { owner: this.#options.words?.owner ?? owner, since };
  }

  /** What it asks of the engine. */
  get share(): Share | undefined {
    const { share } = this.#options;
    return share?.kind === "semaphore" && this.#hasWaited && this.#line.wasGranted
      ? { ...share, hasWaited: true }
      : share;
  }

  accepts(hold: Hold): boolean {
    const { ttlMs, renew } = this.#options;
    const { clock, driver } = this.#contention;
    const used = Number(hold.fencingToken - hold.grant.fencingToken) + 1;
    const needed = Math.min(ttlMs, driver.capabilities.claimMs) / 3;
    return renew && hold.isOurs && used < hold.grant.fencingCount && leftOf(hold.validity, clock) >= needed;
  }

  receive(from: Hold): Hold {
    const kept = Hold.keep(this.#contention, from.grant, this.#options, from.fencingToken + 1n);
    tell("handover", () => ({ key: this.#key, fencingToken: kept.hold.fencingToken }));
    this.#succeed(kept);
    return kept.hold;
  }

  contend(from?: Hold): Promise<boolean> | undefined {
    const { driver, waits } = this.#contention;
    if (this.#deadline !== Infinity) {
      waits.cancel(this);
    }
    this.#contendsSince = this.#contention.clock.now();
    const turn = { deadline: this.#deadline, caller: this, from };
    const request = requestFor(this.#contention, this.#key, this.#options, turn);
    if (!from) {
      this.#follow(driver.acquire(request));
      return undefined;
    }
    const pending = driver.requeue(from.grant, request);
    this.#follow(pending);
    return pending.released;
  }

  /** The next one's turn, who does not wait until this one is told who holds the lock. */
  left(): void {
    if (this.#standsInLine) {
      this.#line.leave(this);
    }
  }

  /** Who waits without a deadline is waited for all the same: a timer of ours keeps the process alive. */
  #holdProcess(): void {
    if (this.#deadline === Infinity && !this.#isSettled) {
      this.#contention.waits.schedule(this, this.#contention.clock.now() + longMs);
    }
  }

  #follow(pending: Pending): void {
    this.#pending = pending;
    pending.result.then(
      (acquired) => this.#acquired(acquired),
      (error: unknown) =>
        this.#fail(this.#cameTooLate(error) ? new WaitTimeoutError(this.#key, this.#options.waitMs) : error),
    );
  }

  /** The local line took the time that an answer needs: that says nothing of the engine. */
  #cameTooLate(error: unknown): boolean {
    const leftMs = this.#deadline - this.#contendsSince;
    const hadLittle = leftMs < this.#options.waitMs && leftMs < shortestAnswerMs;
    const isUnanswered = error instanceof EngineError || error instanceof QuorumError;
    return hadLittle && isUnanswered && error.outcome === "unknown";
  }

  #acquired(acquired: Acquired): void {
    if (this.#isSettled) {
      return;
    }
    const { waitMs } = this.#options;
    if (acquired.outcome === "held") {
      this.#fail(new WaitTimeoutError(this.#key, waitMs, acquired.holder, acquired.position));
    } else if (this.#cancelled) {
      this.#contention.decline(acquired.grant);
      this.#fail(this.#cancelled.reason);
    } else {
      const kept = Hold.keep(this.#contention, acquired.grant, this.#options);
      if (this.#standsInLine) {
        this.#line.granted(this, kept.hold, this.#contention.clock.now());
      }
      this.#succeed(kept);
    }
  }

  #succeed({ lease }: Kept): void {
    if (this.#settle()) {
      this.#resolve(lease);
    }
  }

  #fail(error: unknown): void {
    if (this.#settle()) {
      if (this.#standsInLine) {
        this.#line.leave(this);
      }
      this.#reject(error);
    }
  }

  #settle(): boolean {
    if (this.#isSettled) {
      return false;
    }
    this.#isSettled = true;
    this.#contention.acquisitions.delete(this);
    this.#contention.waits.cancel(this);
    this.#stopListening?.();
    if (!this.#standsInLine) {
      this.#lines.outside -= 1;
    }
    return true;
  }
}
