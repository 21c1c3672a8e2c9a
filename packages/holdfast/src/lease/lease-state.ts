import type { Clock } from "../runtime/clock.ts";
import { hasSubscribers, publish, trace, traces, type HoldTrace } from "../diagnostics.ts";
import type { Driver, ExtendResult, Grant, LockMode } from "../driver.ts";
import { LeaseLostError, LockError, type LossReason } from "../errors.ts";
import { LeaseHandle, type SerializedLease } from "./lease.ts";
import type { Handoverable, HandoverRun } from "../local/local-queue.ts";
import type { ResolvedAcquire } from "../options.ts";
import type { Holder } from "../lock-state.ts";
import {
  wasSuspended,
  engineExpiry,
  remainingValidityMs,
  extendValidity,
  type Validity,
} from "../validity.ts";
import type { Renewable, WatchedLease, Watchdog } from "./watchdog.ts";

/** What a hold needs of the house it lives in. */
export interface LeaseHost {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly owner: string;
  /** Gives a hold back: to the next in the local line, or to the engine. */
  release(hold: LeaseState): Promise<boolean>;
  /** The engine says that a grant is not ours any more: every hold that stands on it is lost. */
  markLost(token: string, reason: LossReason): void;
  /** The hold ended without a release: nobody can be handed it. */
  leaseEnded(hold: LeaseState): void;
  /** How many callers wait in memory for this hold, for the engine; undefined: none, and the engine has no report of others. */
  localWaitersToReport(hold: LeaseState): number | undefined;
}

/** How a hold is kept; of an acquire's options those that outlive the grant. */
export type LeaseStateOptions = Pick<ResolvedAcquire, "ttlMs" | "renew" | "maxHoldMs" | "ifLost" | "info"> & {
  /** Of which line it is. */
  readonly lockMode?: LockMode | undefined;
  /** It came by a transfer, which may have been adopted more than once: others may have a lease on the same grant. */
  readonly isAdopted?: boolean;
};

/**
 * The inner side of a lease: what is true of it, and the ways in which it ends. Each hold has a fencing token of its own;
 * holds that were handed over in memory share the grant and its validity.
 */
export class LeaseState implements Renewable, Handoverable<LeaseState> {
  readonly key: string;
  readonly grant: Grant;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  endsAt: number;
  isClaim: boolean;
  handoverRun: HandoverRun<LeaseState> | undefined;
  readonly #host: LeaseHost;
  readonly #options: LeaseStateOptions;
  #lease: LeaseHandle | WeakRef<LeaseHandle> | undefined;
  readonly #watched: WatchedLease;
  readonly #trace: HoldTrace | undefined;
  #state: "held" | "orphaned" | "leaked" | "transferred" | "downgraded" | "released" | "lost" = "held";
  #downgradedLease: LeaseHandle | undefined;
  #isRenewed: boolean;
  #loss: LeaseLostError | undefined;
  #controller: WeakRef<AbortController> | undefined;
  #releasing: Promise<boolean> | undefined;

  private constructor(host: LeaseHost, grant: Grant, options: LeaseStateOptions, fencingToken: bigint) {
    this.key = grant.key;
    this.grant = grant;
    this.fencingToken = fencingToken;
    this.ttlMs = options.ttlMs;
    this.endsAt = host.clock.now() + options.maxHoldMs;
    this.isClaim = grant.isClaim;
    this.#host = host;
    this.#options = options;
    this.#isRenewed = options.renew;
    this.#trace = hasSubscribers(traces.hold) ? { key: this.key, fencingToken } : undefined;
    if (this.#trace) {
      traces.hold.start.publish(this.#trace);
      traces.hold.end.publish(this.#trace);
    }
    this.#watched = host.watchdog.watch(this);
  }

  /** Takes a grant into keeping. The lease that comes with it is for the caller and for nobody else. */
  static create(
    host: LeaseHost,
    grant: Grant,
    options: LeaseStateOptions,
    fencingToken: bigint = grant.fencingToken,
  ): CreatedLease {
    const leaseState = new LeaseState(host, grant, options, fencingToken);
    const lease = new LeaseHandle(leaseState);
    leaseState.#lease = lease;
    return { state: leaseState, lease };
  }

  get owner(): string {
    return this.#options.info?.owner ?? this.#host.owner;
  }

  get lockMode(): LockMode | undefined {
    return this.#options.lockMode;
  }

  get validity(): Validity {
    return this.grant.validity;
  }

  get maxTtlMs(): number {
    return this.#host.driver.capabilities.maxTtlMs;
  }

  get needsRenewal(): boolean {
    return this.#state === "held" && (this.#isRenewed || this.isClaim);
  }

  /** Whether it may be handed to another caller in memory: it is ours, and nobody else knows its token. */
  get canBeHandedOver(): boolean {
    return this.#state === "held" && remainingValidityMs(this.validity, this.#host.clock) > 0;
  }

  /** Whether somebody holds it, as far as we know: also while it is only left to expire. */
  get isHeld(): boolean {
    return this.#isLive && remainingValidityMs(this.validity, this.#host.clock) > 0;
  }

  get isOrphaned(): boolean {
    return this.#state === "orphaned";
  }

  get isTransferred(): boolean {
    return this.#state === "transferred";
  }

  /** The reader that this writer became. */
  get downgradedLease(): LeaseHandle | undefined {
    return this.#downgradedLease;
  }

  describe(): Holder {
    const { owner, fencingToken } = this;
    return { ...this.#options.info, owner, fencingToken, remainingMs: this.remainingMs() } as Holder;
  }

  /** Asked at each renewal. From the first on we hold the lease weakly: most end before, and weak references are dear. */
  isLeaseReferenced(): boolean {
    if (this.#lease instanceof LeaseHandle) {
      this.#lease = new WeakRef(this.#lease);
    }
    return this.#lease?.deref() !== undefined;
  }

  remainingMs(): number {
    return this.isHeld
      ? Math.min(remainingValidityMs(this.validity, this.#host.clock), this.endsAt - this.#host.clock.now())
      : 0;
  }

  /** The loss, undefined while there is none; found by the clocks where no timer has run yet. */
  currentLoss(): LeaseLostError | undefined {
    const { clock } = this.#host;
    if (this.#isLive) {
      if (remainingValidityMs(this.validity, clock) <= 0) {
        this.markLost(wasSuspended(this.validity, clock) ? "suspended" : "expired");
      } else if (clock.now() >= this.endsAt) {
        this.markLost("max-hold");
      }
    }
    return this.#loss;
  }

  throwIfLost(): void {
    const loss = this.currentLoss();
    if (loss) {
      throw loss;
    }
    if (this.#state === "released" || this.#state === "transferred" || this.#state === "downgraded") {
      throw new LeaseLostError(this.key, "released", this.#host.clock.wall());
    }
  }

  abortOnLoss(controller: AbortController): void {
    this.#controller = new WeakRef(controller);
    const loss = this.currentLoss();
    if (loss && this.#options.ifLost === "abort") {
      controller.abort(loss);
    }
  }

  async extend(ttlMs: number): Promise<void> {
    this.throwIfLost();
    const extension = await this.#requestExtension(ttlMs);
    switch (extension.outcome) {
      case "renewed":
        extendValidity(this.validity, extension.validity, this.#host.clock);
        this.isClaim &&= ttlMs < this.ttlMs;
        this.#host.watchdog.reschedule(this.#watched);
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
    const { driver } = this.#host;
    const verified = await driver.verify(this.key, this.grant.token).catch(() => undefined);
    if (verified?.outcome === "lost") {
      this.#host.markLost(this.grant.token, verified.reason);
    }
  }

  renew(): Promise<ExtendResult> {
    return this.#requestExtension(this.ttlMs);
  }

  claimConfirmed(): void {
    this.isClaim = false;
  }

  /** It ends so long from now, whatever was said before. */
  endAfter(ms: number): void {
    this.endsAt = this.#host.clock.now() + ms;
    this.#host.watchdog.reschedule(this.#watched);
  }

  stopRenewing(): void {
    this.#isRenewed = false;
    this.#host.watchdog.reschedule(this.#watched);
  }

  release(): Promise<boolean> {
    this.#releasing ??= hasSubscribers(traces.release) ? this.#releaseTraced() : this.#release();
    return this.#releasing;
  }

  /** Released by `close()` and not by who holds it: who still works is told. */
  releaseOnClose(): Promise<boolean> {
    const wasHeld = this.#isLive;
    const released = this.release();
    if (wasHeld && this.#state === "released") {
      this.#loss = new LeaseLostError(this.key, "released", this.#host.clock.wall());
      this.#abort(this.#loss);
    }
    return released;
  }

  orphan(): void {
    if (this.#state === "held") {
      this.#state = "orphaned";
      this.#host.watchdog.reschedule(this.#watched);
      this.#host.leaseEnded(this);
    }
  }

  transfer(): SerializedLease {
    this.#requireHeld("transferred");
    this.#end("transferred", "transferred");
    this.#host.leaseEnded(this);
    const { key, owner, ttlMs, grant, fencingToken } = this;
    const { reason, labels } = this.#options.info ?? {};
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
  async downgrade(): Promise<LeaseHandle> {
    this.#requireHeld("downgraded");
    if (this.#options.isAdopted === true) {
      const message = `The lease of "${this.key}" was adopted, perhaps more than once; it cannot be downgraded`;
      throw new LockError(message, { code: "unsupported", key: this.key });
    }
    this.#end("downgraded", "transferred");
    const { driver } = this.#host;
    const grant = { ...this.grant, isClaim: this.isClaim };
    const options = { ...this.#options, maxHoldMs: this.endsAt - this.#host.clock.now() };
    const { state: leaseState, lease } = LeaseState.create(this.#host, grant, options, this.fencingToken);
    this.#downgradedLease = lease;
    const confirmed = driver.downgrade(this.key, this.grant.token, engineExpiry(this.validity));
    if (!(await confirmed.catch(() => true))) {
      this.#host.markLost(this.grant.token, "expired");
    }
    leaseState.throwIfLost();
    return lease;
  }

  markLost(reason: LossReason, cause?: unknown): void {
    if (!this.#isLive) {
      return;
    }
    this.#loss = new LeaseLostError(this.key, reason, this.#host.clock.wall(), { cause });
    this.#end("lost", reason);
    this.#abort(this.#loss);
    publish("lost", () => ({ key: this.key, reason, fencingToken: this.fencingToken }));
    this.#host.leaseEnded(this);
  }

  /** Nobody can release it any more. It is left to expire, so that a forgotten lease does not hold its key for ever. */
  reportLeak(): void {
    this.#state = "leaked";
    this.#host.leaseEnded(this);
    publish("leaked", () => ({ key: this.key, fencingToken: this.fencingToken }));
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
    return trace(
      traces.release,
      () => ({ key: this.key }),
      () => this.#release(),
      (context, released) => (context.released = released),
    );
  }

  #release(): Promise<boolean> {
    if (this.#state === "transferred") {
      return notHeld;
    } else if (this.#downgradedLease) {
      return this.#downgradedLease.release();
    }
    if (this.currentLoss()) {
      // Ours no more as far as we may know; where the engine still has it, the next need not wait for the TTL.
      // But not of an adopted one: another lease on it may be in force.
      if (this.#options.isAdopted !== true) {
        this.#host.driver.release(this.key, this.grant.token, engineExpiry(this.validity)).catch(() => false);
      }
      return notHeld;
    }
    const released = this.#host.release(this);
    this.#end("released", "released");
    if (this.#options.isAdopted === true) {
      this.#host.markLost(this.grant.token, "released");
    }
    return released;
  }

  /** Extends, with a report where the engine keeps one beside the key: it replaces the last. */
  async #requestExtension(ttlMs: number): Promise<ExtendResult> {
    const { key, fencingToken, grant, validity } = this;
    validity.engineUntil = Math.max(validity.engineUntil ?? 0, this.#host.clock.now() + ttlMs);
    const { info } = this.#options;
    const localWaiters = this.#host.localWaitersToReport(this);
    const hasReport = info !== undefined || fencingToken !== grant.fencingToken || localWaiters !== undefined;
    const extension = await this.#host.driver.extend({
      key,
      token: grant.token,
      fencingToken,
      ttlMs,
      info: hasReport ? { ...info, fencingToken, localWaiters } : undefined,
    });
    if (extension.outcome === "lost") {
      this.#host.markLost(grant.token, extension.reason); // also whoever was handed the grant while we asked
    }
    return extension;
  }

  #end(state: "lost" | "released" | "transferred" | "downgraded", reason: LossReason | "transferred"): void {
    this.#state = state;
    this.#host.watchdog.unwatch(this.#watched);
    if (this.#trace) {
      this.#trace.reason = reason;
      this.#trace.overrunMs = Math.max(0, -remainingValidityMs(this.validity, this.#host.clock));
      traces.hold.asyncStart.publish(this.#trace);
      traces.hold.asyncEnd.publish(this.#trace);
    }
  }
}

const notHeld = Promise.resolve(false);

/** A hold and the lease that its caller gets. */
export interface CreatedLease {
  readonly state: LeaseState;
  readonly lease: LeaseHandle;
}
