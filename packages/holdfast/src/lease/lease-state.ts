import type { Clock } from "../runtime/clock.ts";
import { isHeard, tell, traced, traces, type HoldTrace } from "../diagnostics.ts";
import type { Driver, Extension, Grant, Share } from "../driver.ts";
import { LeaseLostError, LockError, type LossReason } from "../errors.ts";
import { HeldLease, type SerializedLease } from "./lease.ts";
import type { Handed, Run } from "../local/local-queue.ts";
import type { ResolvedAcquire } from "../options.ts";
import type { Holder } from "../lock-state.ts";
import { endsEarly, engineEnd, leftOf, prolong, type Validity } from "../validity.ts";
import type { Renewable, Watch, Watchdog } from "./watchdog.ts";

/** What a hold needs of the house it lives in. */
export interface Keeper {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly owner: string;
  /** Gives a hold back: to the next in the local line, or to the engine. */
  giveBack(hold: Hold): Promise<boolean>;
  /** The engine says that a grant is not ours any more: every hold that stands on it is lost. */
  lose(token: string, reason: LossReason): void;
  /** The hold ended without a release: nobody can be handed it. */
  ended(hold: Hold): void;
  /** How many callers wait in memory for this hold, for the engine; undefined: none, and the engine has no report of others. */
  reportWaiters(hold: Hold): number | undefined;
}

/** How a hold is kept; of an acquire's options those that outlive the grant. */
export type HoldOptions = Pick<ResolvedAcquire, "ttlMs" | "renew" | "maxHoldMs" | "ifLost" | "words"> & {
  /** Of which line it is. */
  readonly share?: Share | undefined;
  /** It came by a transfer, which may have been adopted more than once: others may have a lease on the same grant. */
  readonly isAdopted?: boolean;
};

/**
 * The inner side of a lease: what is true of it, and the ways in which it ends. Each hold has a fencing token of its own;
 * holds that were handed over in memory share the grant and its validity.
 */
export class Hold implements Renewable, Handed<Hold> {
  readonly key: string;
  readonly grant: Grant;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  endsAt: number;
  isClaim: boolean;
  run: Run<Hold> | undefined;
  readonly #keeper: Keeper;
  readonly #options: HoldOptions;
  #lease: HeldLease | WeakRef<HeldLease> | undefined;
  readonly #watch: Watch;
  readonly #trace: HoldTrace | undefined;
  #state: "held" | "orphaned" | "leaked" | "transferred" | "downgraded" | "released" | "lost" = "held";
  #reader: HeldLease | undefined;
  #renews: boolean;
  #loss: LeaseLostError | undefined;
  #controller: WeakRef<AbortController> | undefined;
  #releasing: Promise<boolean> | undefined;

  private constructor(keeper: Keeper, grant: Grant, options: HoldOptions, fencingToken: bigint) {
    this.key = grant.key;
    this.grant = grant;
    this.fencingToken = fencingToken;
    this.ttlMs = options.ttlMs;
    this.endsAt = keeper.clock.now() + options.maxHoldMs;
    this.isClaim = grant.isClaim;
    this.#keeper = keeper;
    this.#options = options;
    this.#renews = options.renew;
    this.#trace = isHeard(traces.hold) ? { key: this.key, fencingToken } : undefined;
    if (this.#trace) {
      traces.hold.start.publish(this.#trace);
      traces.hold.end.publish(this.#trace);
    }
    this.#watch = keeper.watchdog.watch(this);
  }

  /** Takes a grant into keeping. The lease that comes with it is for the caller and for nobody else. */
  static keep(
    keeper: Keeper,
    grant: Grant,
    options: HoldOptions,
    fencingToken: bigint = grant.fencingToken,
  ): Kept {
    const hold = new Hold(keeper, grant, options, fencingToken);
    const lease = new HeldLease(hold);
    hold.#lease = lease;
    return { hold, lease };
  }

  get owner(): string {
    return this.#options.words?.owner ?? this.#keeper.owner;
  }

  get share(): Share | undefined {
    return this.#options.share;
  }

  get validity(): Validity {
    return this.grant.validity;
  }

  get longestTtlMs(): number {
    return this.#keeper.driver.capabilities.maxTtlMs;
  }

  get wantsRenewal(): boolean {
    return this.#state === "held" && (this.#renews || this.isClaim);
  }

  /** Whether it may be handed to another caller in memory: it is ours, and nobody else knows its token. */
  get isOurs(): boolean {
    return this.#state === "held" && leftOf(this.validity, this.#keeper.clock) > 0;
  }

  /** Whether somebody holds it, as far as we know: also while it is only left to expire. */
  get isHeld(): boolean {
    return this.#isLive && leftOf(this.validity, this.#keeper.clock) > 0;
  }

  get isOrphaned(): boolean {
    return this.#state === "orphaned";
  }

  get wasTransferred(): boolean {
    return this.#state === "transferred";
  }

  /** The reader that this writer became. */
  get reader(): HeldLease | undefined {
    return this.#reader;
  }

  describe(): Holder {
    const { owner, fencingToken } = this;
    return { ...this.#options.words, owner, fencingToken, remainingMs: this.remainingMs() } as Holder;
  }

  /** Asked at each renewal. From the first on we hold the lease weakly: most end before, and weak references are dear. */
  isReachable(): boolean {
    if (this.#lease instanceof HeldLease) {
      this.#lease = new WeakRef(this.#lease);
    }
    return this.#lease?.deref() !== undefined;
  }

  remainingMs(): number {
    return this.isHeld
      ? Math.min(leftOf(this.validity, this.#keeper.clock), this.endsAt - this.#keeper.clock.now())
      : 0;
  }

  /** The loss, undefined while there is none; found by the clocks where no timer has run yet. */
  lossNow(): LeaseLostError | undefined {
    const { clock } = this.#keeper;
    if (this.#isLive) {
      if (leftOf(this.validity, clock) <= 0) {
        this.lose(endsEarly(this.validity, clock) ? "suspended" : "expired");
      } else if (clock.now() >= this.endsAt) {
        this.lose("max-hold");
      }
    }
    return this.#loss;
  }

  throwIfLost(): void {
    const loss = this.lossNow();
    if (loss) {
      throw loss;
    }
    if (this.#state === "released" || this.#state === "transferred" || this.#state === "downgraded") {
      throw new LeaseLostError(this.key, "released", this.#keeper.clock.wall());
    }
  }

  abortAtLoss(controller: AbortController): void {
    this.#controller = new WeakRef(controller);
    const loss = this.lossNow();
    if (loss && this.#options.ifLost === "abort") {
      controller.abort(loss);
    }
  }

  async extend(ttlMs: number): Promise<void> {
    this.throwIfLost();
    const extension = await this.#askEngine(ttlMs);
    switch (extension.outcome) {
      case "renewed":
        prolong(this.validity, extension.validity, this.#keeper.clock);
        this.isClaim &&= ttlMs < this.ttlMs;
        this.#keeper.watchdog.review(this.#watch);
        break;
      case "lost":
        break;
      case "unknown":
        throw extension.error;
    }
    this.throwIfLost();
  }

  /** Asks the engine whether it is still ours, where a message that it is not may have been missed. */
  async verify(): Promise<void> {
    const { driver } = this.#keeper;
    const verified = await driver.verify(this.key, this.grant.token).catch(() => undefined);
    if (verified?.outcome === "lost") {
      this.#keeper.lose(this.grant.token, verified.reason);
    }
  }

  renew(): Promise<Extension> {
    return this.#askEngine(this.ttlMs);
  }

  renewed(): void {
    this.isClaim = false;
  }

  /** It ends so long from now, whatever was said before. */
  endIn(ms: number): void {
    this.endsAt = this.#keeper.clock.now() + ms;
    this.#keeper.watchdog.review(this.#watch);
  }

  stopRenewing(): void {
    this.#renews = false;
    this.#keeper.watchdog.review(this.#watch);
  }

  release(): Promise<boolean> {
    this.#releasing ??= isHeard(traces.release) ? this.#releaseTraced() : this.#release();
    return this.#releasing;
  }

  /** Released by `close()` and not by who holds it: who still works is told. */
  releaseAtClose(): Promise<boolean> {
    const wasHeld = this.#isLive;
    const released = this.release();
    if (wasHeld && this.#state === "released") {
      this.#loss = new LeaseLostError(this.key, "released", this.#keeper.clock.wall());
      this.#abort(this.#loss);
    }
    return released;
  }

  orphan(): void {
    if (this.#state === "held") {
      this.#state = "orphaned";
      this.#keeper.watchdog.review(this.#watch);
      this.#keeper.ended(this);
    }
  }

  transfer(): SerializedLease {
    this.#requireHeld("transferred");
    this.#end("transferred", "transferred");
    this.#keeper.ended(this);
    const { key, owner, ttlMs, grant, fencingToken } = this;
    const { reason, labels } = this.#options.words ?? {};
    return {
      version: 1,
      key,
      token: grant.token,
      fencingToken: fencingToken.toString(),
      owner,
      ...(reason === undefined ? {} : { reason }),
      ...(labels === undefined ? {} : { labels }),
      ttlMs,
    };
  }

  /**
   * Of a writer: ends it and begins a reader on the same grant, at once, as who may write may read. The engine is told, until it
   * knows. Not where others may write by the same grant: they would not hear of it.
   */
  async downgrade(): Promise<HeldLease> {
    this.#requireHeld("downgraded");
    if (this.#options.isAdopted === true) {
      const message = `The lease of "${this.key}" was adopted, perhaps more than once; it cannot be downgraded`;
      throw new LockError(message, { code: "unsupported", key: this.key });
    }
    this.#end("downgraded", "transferred");
    const { driver } = this.#keeper;
    const grant = { ...this.grant, isClaim: this.isClaim };
    const options = { ...this.#options, maxHoldMs: this.endsAt - this.#keeper.clock.now() };
    const { hold, lease } = Hold.keep(this.#keeper, grant, options, this.fencingToken);
    this.#reader = lease;
    const told = driver.downgrade(this.key, this.grant.token, engineEnd(this.validity));
    if (!(await told.catch(() => true))) {
      this.#keeper.lose(this.grant.token, "expired");
    }
    hold.throwIfLost();
    return lease;
  }

  lose(reason: LossReason, cause?: unknown): void {
    if (!this.#isLive) {
      return;
    }
    this.#loss = new LeaseLostError(this.key, reason, this.#keeper.clock.wall(), { cause });
    this.#end("lost", reason);
    this.#abort(this.#loss);
    tell("lost", () => ({ key: this.key, reason, fencingToken: this.fencingToken }));
    this.#keeper.ended(this);
  }

  /** Nobody can release it any more. It is left to expire, so that a forgotten lease does not hold its key for ever. */
  leak(): void {
    this.#state = "leaked";
    this.#keeper.ended(this);
    tell("leaked", () => ({ key: this.key, fencingToken: this.fencingToken }));
    process.emitWarning(
      `The lease of "${this.key}" was garbage-collected without a release; it is no longer renewed`,
      { code: "HOLDFAST_LEAKED_LEASE" },
    );
  }

  #requireHeld(toBe: string): void {
    this.throwIfLost();
    if (this.#state !== "held") {
      throw new LockError(`The lease of "${this.key}" is ${this.#state}; it cannot be ${toBe}`, {
        code: "unsupported",
        key: this.key,
      });
    }
  }

  #abort(loss: LeaseLostError): void {
    if (this.#options.ifLost === "abort") {
      this.#controller?.deref()?.abort(loss);
    }
  }

  get #isLive(): boolean {
    return this.#state === "held" || this.#state === "orphaned" || this.#state === "leaked";
  }

  #releaseTraced(): Promise<boolean> {
    return traced(
      traces.release,
      () => ({ key: this.key }),
      () => this.#release(),
      (context, released) => (context.released = released),
    );
  }

  #release(): Promise<boolean> {
    if (this.#state === "transferred") {
      return notOurs;
    } else if (this.#reader) {
      return this.#reader.release();
    }
    if (this.lossNow()) {
      // Ours no more as far as we may know; where the engine still has it, the next need not wait for the TTL.
      // But not of an adopted one: another lease on it may be in force.
      if (this.#options.isAdopted !== true) {
        this.#keeper.driver.release(this.key, this.grant.token, engineEnd(this.validity)).catch(() => false);
      }
      return notOurs;
    }
    const released = this.#keeper.giveBack(this);
    this.#end("released", "released");
    if (this.#options.isAdopted === true) {
      this.#keeper.lose(this.grant.token, "released");
    }
    return released;
  }

  /** Extends, with a report where the engine keeps one beside the key: it replaces the last. */
  async #askEngine(ttlMs: number): Promise<Extension> {
    const { key, fencingToken, grant, validity } = this;
    validity.engineUntil = Math.max(validity.engineUntil ?? 0, this.#keeper.clock.now() + ttlMs);
    const { words } = this.#options;
    const localWaiters = this.#keeper.reportWaiters(this);
    const hasNews = words !== undefined || fencingToken !== grant.fencingToken || localWaiters !== undefined;
    const extension = await this.#keeper.driver.extend({
      key,
      token: grant.token,
      fencingToken,
      ttlMs,
      words: hasNews ? { ...words, fencingToken, localWaiters } : undefined,
    });
    if (extension.outcome === "lost") {
      this.#keeper.lose(grant.token, extension.reason); // also whoever was handed the grant while we asked
    }
    return extension;
  }

  #end(state: "lost" | "released" | "transferred" | "downgraded", reason: LossReason | "transferred"): void {
    this.#state = state;
    this.#keeper.watchdog.forget(this.#watch);
    if (this.#trace) {
      this.#trace.reason = reason;
      this.#trace.overrunMs = Math.max(0, -leftOf(this.validity, this.#keeper.clock));
      traces.hold.asyncStart.publish(this.#trace);
      traces.hold.asyncEnd.publish(this.#trace);
    }
  }
}

const notOurs = Promise.resolve(false);

/** A hold and the lease that its caller gets. */
export interface Kept {
  readonly hold: Hold;
  readonly lease: HeldLease;
}
