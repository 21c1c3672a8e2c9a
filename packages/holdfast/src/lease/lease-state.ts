import type { ExtendResult, Grant, LockMode } from "../driver.ts";
import { isLockError, LeaseLostError, type LossReason, unsupportedLease } from "../errors.ts";
import type { ResolvedAcquire } from "../options.ts";
import type { Clock } from "../runtime/clock.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import type { Renewable, WatchedLease } from "./watchdog.ts";
import { QueueNode } from "../runtime/linked-queue.ts";
import {
  engineOf,
  hasSubscribers,
  type HoldTrace,
  kindOf,
  type LeaseFacts,
  modeOf,
  publish,
  type RenewTrace,
  trace,
  traces,
} from "../diagnostics.ts";
import { emitWarning } from "../runtime/node-modules.ts";
import { engineExpiry, extendValidity, remainingValidityMs, type Validity } from "../validity.ts";
import { checkTtl } from "../option-checks.ts";
import {
  BaseLease,
  type InternalLease,
  lossControllerOf,
  type SerializedLease,
  serializeLease,
  type WriteLease,
} from "./lease.ts";
import type { Holder } from "../lock-state.ts";

/** The options of an acquire that stay in force after the grant. */
export type LeaseStateOptions = Pick<
  ResolvedAcquire,
  "ttlMs" | "renew" | "maxHoldMs" | "ifLost" | "info" | "trace"
> & {
  readonly minHoldMs?: number;
  /** Selects the local queue of the lease. */
  readonly lockMode?: LockMode | undefined;
  /** The lease was adopted. It may have been adopted more than once, so other leases may use the same grant. */
  readonly isAdopted?: boolean;
};

/** A lease's state, and the handle for its caller. */
export interface CreatedLease {
  readonly state: LeaseState;
  readonly lease: LeaseHandle;
}

/** The node of a lease in its local queue, with the number and the start of the hand-overs of its grant. */
export class HandoverRun<Hold> extends QueueNode<Hold> {
  readonly handovers: number;
  readonly since: number;

  constructor(hold: Hold, handovers: number, since: number) {
    super(hold);
    this.handovers = handovers;
    this.since = since;
  }
}

/** A lease that may be handed over. Only its local queue writes `handoverRun`. */
export interface Handoverable<Hold> {
  handoverRun: HandoverRun<Hold> | undefined;
}

/** Reports a hold, from its grant to its end. */
class HoldReport {
  readonly #context: HoldTrace;
  readonly #clock: Clock;
  readonly #since: number;

  private constructor(context: HoldTrace, clock: Clock) {
    this.#context = context;
    this.#clock = clock;
    this.#since = clock.now();
    traces.hold.start.publish(context);
    traces.hold.end.publish(context);
  }

  /** Undefined: the channel has no subscribers. */
  static start(lease: LeaseState, options: LeaseStateOptions, clock: Clock): HoldReport | undefined {
    if (!hasSubscribers(traces.hold)) {
      return undefined;
    }
    const { key, instance, engine, kind, mode, fencingToken } = lease.facts();
    const [ttlMs, call] = [options.ttlMs, options.trace?.call];
    const end = { reason: undefined, heldMs: undefined, overrunMs: undefined };
    return new HoldReport({ key, instance, engine, kind, mode, fencingToken, call, ttlMs, ...end }, clock);
  }

  /** @param remainingMs validity at the end, ms; negative if the validity ended first */
  end(reason: LossReason | "transferred", remainingMs: number): void {
    const context = this.#context;
    context.reason = reason;
    context.heldMs = this.#clock.now() - this.#since;
    context.overrunMs = Math.max(0, -remainingMs);
    traces.hold.asyncStart.publish(context);
    traces.hold.asyncEnd.publish(context);
  }
}

function traceRelease(lease: LeaseState, release: () => Promise<boolean>): Promise<boolean> {
  if (!hasSubscribers(traces.release)) {
    return release();
  }
  return trace(
    traces.release,
    () => {
      const { key, instance, engine, kind, mode, fencingToken } = lease.facts();
      const end = undefined;
      return { key, instance, engine, kind, mode, fencingToken, released: end, errorCode: end, error: end };
    },
    release,
    (context, settled) => {
      if ("result" in settled) {
        context.released = settled.result;
      } else if (isLockError(settled.error)) {
        context.errorCode = settled.error.code;
      }
    },
  );
}

/** Traces a renewal of the watchdog, or an `extend()` of the caller. @param margin the remaining validity at the start, ms */
function traceRenewal(
  lease: LeaseState,
  ttlMs: number,
  margin: () => number,
  renew: () => Promise<ExtendResult>,
): Promise<ExtendResult> {
  const describe = (): RenewTrace => ({
    ...lease.facts(),
    ttlMs,
    marginMs: margin(),
    outcome: undefined,
    errorCode: undefined,
  });
  return trace(traces.renew, describe, renew, (context, settled) => {
    if ("result" in settled) {
      const { result } = settled;
      context.outcome = result.outcome;
      if (result.outcome === "unknown" && isLockError(result.error)) {
        context.errorCode = result.error.code;
      }
    }
  });
}

/** Reports a lease whose handle was garbage-collected without a release. */
function reportLeakedLease(lease: LeaseState): void {
  publish("leaked", () => lease.facts());
  const message = `The lease of "${lease.key}" was garbage-collected without a release; it is no longer renewed`;
  emitWarning(message, "HOLDFAST_LEAKED_LEASE");
}

type LossListener = (loss: LeaseLostError) => void;

/**
 * The lease in the hands of a caller. From its first renewal on, the library refers to it weakly until its `signal` is used, so that a
 * dropped handle ends the renewals.
 */
export class LeaseHandle extends BaseLease implements InternalLease, WriteLease {
  readonly #state: LeaseState;
  #controller: AbortController | undefined;

  constructor(state: LeaseState) {
    super();
    this.#state = state;
  }

  get key(): string {
    return this.#state.key;
  }

  get keys(): readonly string[] {
    return [this.#state.key];
  }

  get owner(): string {
    return this.#state.owner;
  }

  get fencingToken(): bigint {
    return this.#state.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, bigint> {
    return new Map([[this.key, this.fencingToken]]);
  }

  get validUntil(): number {
    return Math.min(this.#state.validity.until, this.#state.endsAt);
  }

  /**
   * Created at the first use, because most leases end without one. A caller may wait for the signal alone, and then nothing else refers to
   * that caller. Therefore the library refers to the signal until the end of the lease, and the signal refers to this handle.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = lossControllerOf(this);
      this.#controller = controller;
      this.#state.onLoss((loss) => controller.abort(loss));
    }
    return this.#controller.signal;
  }

  /** See {@link LeaseState.onLoss}. */
  onLoss(listener: LossListener): void {
    this.#state.onLoss(listener);
  }

  get isLost(): boolean {
    return this.#state.isLost;
  }

  remainingMs(): number {
    return this.#state.remainingMs();
  }

  throwIfLost(): void {
    this.#state.throwIfLost();
  }

  extend(ttlMs?: number): Promise<void> {
    const state = this.#state;
    return state.extend(ttlMs === undefined ? state.ttlMs : checkTtl("ttlMs", ttlMs, state.maxTtlMs));
  }

  release(): Promise<boolean> {
    return this.#state.release();
  }

  orphan(): void {
    this.#state.orphan();
  }

  transfer(): SerializedLease {
    return this.#state.transfer();
  }

  get isTransferred(): boolean {
    return this.#state.isTransferred;
  }

  /** See {@link WriteLease.downgrade}. */
  downgrade(): Promise<LeaseHandle> {
    return this.#state.downgrade();
  }

  /** Extends the lease once more, and ends its renewals. */
  async stopRenewingAfter(ttlMs: number): Promise<void> {
    await this.#state.extend(ttlMs);
    this.#state.stopRenewing();
  }

  override get isInForce(): boolean {
    return (this.#state.downgradedLease ?? this).remainingMs() > 0;
  }

  /** Replaces the end of the lease: `ms` from now. */
  holdFor(ms: number): void {
    this.#state.holdFor(ms);
  }

  endAfter(ms: number): void {
    this.#state.endAfter(ms);
  }

  currentLoss(): LossReason | undefined {
    const { downgradedLease } = this.#state;
    return downgradedLease ? downgradedLease.currentLoss() : this.#state.currentLoss()?.reason;
  }
}

const shortestTtlMs = 100;

/** The state of a lease, from its grant to its end. Leases that were handed over in memory share one grant and its validity. */
export class LeaseState implements Renewable, Handoverable<LeaseState> {
  readonly key: string;
  readonly grant: Grant;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** When this process received the lease, on the scale of `clock.now()`. */
  readonly heldFrom: number;
  /** The end of `maxHoldMs`, on the scale of `clock.now()`. */
  endsAt: number;
  isClaim: boolean;
  handoverRun: HandoverRun<LeaseState> | undefined;
  readonly #host: LocalCoordinator;
  readonly #options: LeaseStateOptions;
  #lease: LeaseHandle | WeakRef<LeaseHandle> | undefined;
  readonly #watched: WatchedLease;
  readonly #hold: HoldReport | undefined;
  /** The end of `minHoldMs`, on the scale of `clock.now()`. */
  #heldUntil: number;
  #state: "held" | "orphaned" | "leaked" | "transferred" | "downgraded" | "released" | "lost" = "held";
  #downgradedLease: LeaseHandle | undefined;
  #isRenewed: boolean;
  #isLastConfirmed = false;
  #loss: LeaseLostError | undefined;
  #lossListeners: LossListener[] | undefined;
  #releasing: Promise<boolean> | undefined;

  private constructor(
    host: LocalCoordinator,
    grant: Grant,
    options: LeaseStateOptions,
    { fencingToken, isClaim }: Pick<Grant, "fencingToken" | "isClaim">,
  ) {
    this.key = grant.key;
    this.grant = grant;
    this.fencingToken = fencingToken;
    this.ttlMs = options.ttlMs;
    this.heldFrom = host.clock.now();
    this.endsAt = this.heldFrom + options.maxHoldMs;
    this.isClaim = isClaim;
    this.#heldUntil = this.heldFrom + (options.minHoldMs ?? 0);
    this.#host = host;
    this.#options = options;
    this.#isRenewed = options.renew;
    this.#hold = HoldReport.start(this, options, host.clock);
    this.#watched = host.watchdog.watch(this);
  }

  /**
   * Holds a grant. Nothing else in the library may keep the handle, so that its garbage collection reveals a leak.
   * @param own the fencing token of the lease, and whether the grant is still a claim, if another lease had the grant before
   */
  static create(
    host: LocalCoordinator,
    grant: Grant,
    options: LeaseStateOptions,
    own: Pick<Grant, "fencingToken" | "isClaim"> = grant,
  ): CreatedLease {
    const state = new LeaseState(host, grant, options, own);
    const lease = new LeaseHandle(state);
    state.#lease = lease;
    return { state, lease };
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

  /** The facts of this lease for its events. */
  facts(): LeaseFacts {
    const { key, fencingToken, lockMode } = this;
    const shown = this.#options.isAdopted === true ? null : lockMode;
    const [engine, kind, mode] = [engineOf(this.#host), kindOf(shown), modeOf(shown)];
    return { key, instance: this.#host.instance, engine, kind, mode, fencingToken };
  }

  get needsRenewal(): boolean {
    return this.#state === "held" && (this.#isRenewed || this.isClaim);
  }

  /** Whether the grant may be handed over: it is valid, and no other process has its token. */
  get canBeHandedOver(): boolean {
    return this.#state === "held" && remainingValidityMs(this.validity, this.#host.clock) > 0;
  }

  /** Whether the lease holds its key, also if nothing renews it any longer. */
  get isHeld(): boolean {
    return this.#isLive && remainingValidityMs(this.validity, this.#host.clock) > 0;
  }

  get isOrphaned(): boolean {
    return this.#state === "orphaned";
  }

  get isTransferred(): boolean {
    return this.#state === "transferred";
  }

  /** The read lease that this write lease became. */
  get downgradedLease(): LeaseHandle | undefined {
    return this.#downgradedLease;
  }

  describe(): Holder {
    const { owner, fencingToken } = this;
    return { ...this.#options.info, owner, fencingToken, remainingMs: this.remainingMs() } as Holder;
  }

  /** Called at each renewal. The first call makes the reference weak: most leases end earlier, and a `WeakRef` is expensive. */
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

  /** The loss, if any. First declares the lease lost if its time has passed by the clocks, because no timer may have run. */
  currentLoss(): LeaseLostError | undefined {
    const { clock } = this.#host;
    if (this.#isLive) {
      if (remainingValidityMs(this.validity, clock) <= 0) {
        this.#host.watchdog.expire(this.#watched);
      } else if (clock.now() >= this.endsAt) {
        this.markLost("max-hold");
      }
    }
    return this.#loss;
  }

  get isLost(): boolean {
    return this.currentLoss() !== undefined || this.#wasEnded;
  }

  throwIfLost(): void {
    const loss = this.currentLoss();
    if (loss) {
      throw loss;
    }
    if (this.#wasEnded) {
      throw new LeaseLostError(this.key, "released", this.#host.clock.wall());
    }
  }

  /** Calls the listener when the lease is lost, also if it already is. With `ifLost: "continue"` the listener is never called. */
  onLoss(listener: LossListener): void {
    const loss = this.currentLoss();
    const isReported = this.#options.ifLost === "abort";
    if (isReported && loss) {
      listener(loss);
    } else if (isReported) {
      this.#lossListeners = [...(this.#lossListeners ?? []), listener];
    }
  }

  async extend(ttlMs: number): Promise<void> {
    this.throwIfLost();
    if (await this.#extendGrant(ttlMs)) {
      this.isClaim &&= ttlMs < this.ttlMs;
      this.#host.watchdog.reschedule(this.#watched);
    }
    this.throwIfLost();
  }

  /** Checks the grant at the engine, because the notification of its loss may have been missed. */
  async verify(): Promise<void> {
    const { driver } = this.#host;
    const verified = await driver.verify(this.key, this.grant.token).catch(() => undefined);
    if (verified?.outcome === "lost") {
      this.#host.markLost(this.grant.token, verified.reason);
    }
  }

  /** Extends the grant, and declares every lease on it lost if the engine no longer has it. The watchdog extends the validity. */
  renew(ttlMs: number = this.ttlMs): Promise<ExtendResult> {
    const margin = (): number => remainingValidityMs(this.validity, this.#host.clock);
    return traceRenewal(this, ttlMs, margin, () => this.#requestExtension(ttlMs));
  }

  claimConfirmed(): void {
    this.isClaim = false;
  }

  /** One ms after the time for hand-overs, because the run of hand-overs starts shortly after the lease. */
  get reportAt(): number {
    const isDue = this.grant.fencingCount > 1 && !this.#isLastConfirmed;
    return isDue ? this.heldFrom + this.#host.handoverMs + 1 : Infinity;
  }

  /** Replaces the end of the lease: `ms` from now. */
  endAfter(ms: number): void {
    this.endsAt = this.#host.clock.now() + ms;
    this.#host.watchdog.reschedule(this.#watched);
  }

  /** Releases the lease `ms` from now at the earliest. */
  holdFor(ms: number): void {
    this.#heldUntil = this.#host.clock.now() + ms;
  }

  stopRenewing(): void {
    this.#isRenewed = false;
    this.#host.watchdog.reschedule(this.#watched);
  }

  release(): Promise<boolean> {
    return (this.#releasing ??= traceRelease(this, () => this.#release()));
  }

  /** Releases for `close()`. The holder did not ask for this release, so its signal is aborted. */
  releaseOnClose(): Promise<boolean> {
    const wasHeld = this.#isLive;
    const released = this.release();
    if (wasHeld && this.#state === "released") {
      const loss = new LeaseLostError(this.key, "released", this.#host.clock.wall());
      this.#loss = loss;
      this.#lossListeners?.forEach((listener) => listener(loss));
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
    return serializeLease(this, this.#options.info);
  }

  /** Ends this write lease, and returns a read lease on its grant, which holds at once because a writer may read. */
  async downgrade(): Promise<LeaseHandle> {
    this.#requireHeld("downgraded");
    if (this.#options.isAdopted === true) {
      // Another process may write with the same grant, and would not learn of the downgrade.
      throw unsupportedLease(this.key, "was adopted, perhaps more than once", "downgraded");
    }
    this.#end("downgraded", "transferred");
    const lockMode = { kind: "read-write", mode: "read" } as const;
    const now = this.#host.clock.now();
    const hold = { maxHoldMs: this.endsAt - now, minHoldMs: Math.max(0, this.#heldUntil - now) };
    const options = { ...this.#options, lockMode, ...hold };
    const { state, lease } = LeaseState.create(this.#host, this.grant, options, this);
    this.#downgradedLease = lease;
    const { key, token, validity } = this.grant;
    const confirmed = this.#host.driver.downgrade(key, token, engineExpiry(validity));
    if (!(await confirmed.catch(() => true))) {
      this.#host.markLost(token, "expired");
    }
    state.throwIfLost();
    return lease;
  }

  markLost(reason: LossReason, cause?: unknown): void {
    if (this.#isLive) {
      const loss = new LeaseLostError(this.key, reason, this.#host.clock.wall(), { cause });
      this.#loss = loss;
      this.#end("lost", reason);
      this.#lossListeners?.forEach((listener) => listener(loss));
      publish("lost", () => ({ ...this.facts(), reason }));
      this.#host.leaseEnded(this);
    }
  }

  /** The caller has dropped the handle. The grant expires, so that the leaked lease does not hold its key forever. */
  reportLeak(): void {
    this.#state = "leaked";
    this.#host.leaseEnded(this);
    reportLeakedLease(this);
  }

  #requireHeld(toBe: string): void {
    this.throwIfLost();
    if (this.#state !== "held") {
      throw unsupportedLease(this.key, `is ${this.#state}`, toBe);
    }
  }

  /** Whether the holder has ended the lease. */
  get #wasEnded(): boolean {
    return this.#state === "released" || this.#state === "transferred" || this.#state === "downgraded";
  }

  get #isLive(): boolean {
    return this.#state === "held" || this.#state === "orphaned" || this.#state === "leaked";
  }

  #release(): Promise<boolean> {
    if (this.#state === "transferred") {
      return Promise.resolve(false);
    } else if (this.#downgradedLease) {
      return this.#downgradedLease.release();
    }
    if (this.currentLoss()) {
      this.#releaseLostGrant();
      return Promise.resolve(false);
    }
    const keptMs = this.#heldUntil - this.#host.clock.now();
    if (keptMs > 0) {
      return this.#releaseAfter(keptMs);
    }
    const released = this.#host.release(this);
    this.#end("released", "released");
    if (this.#options.isAdopted === true) {
      this.#host.markLost(this.grant.token, "released");
    }
    return released;
  }

  /** Ends the lease, and leaves its grant to the engine for `ms`, also if the process ends before. */
  async #releaseAfter(ms: number): Promise<boolean> {
    this.#end("released", "released");
    this.#host.leaseEnded(this);
    this.#host.releaseAfter(this, ms);
    const isKept = remainingValidityMs(this.validity, this.#host.clock) >= ms;
    return isKept || this.#extendGrant(Math.max(shortestTtlMs, Math.ceil(ms)));
  }

  /**
   * Releases the grant of a lost lease without waiting for the reply, so that the next holder need not wait for the TTL.
   * An adopted grant is not released, because another lease on it may be in force.
   */
  #releaseLostGrant(): void {
    if (this.#options.isAdopted !== true) {
      const { key, token, validity } = this.grant;
      this.#host.driver.release(key, token, engineExpiry(validity)).catch(() => false);
    }
  }

  /** Extends the grant and its validity. Rejects if the engine does not reply. @returns whether the engine has the grant */
  async #extendGrant(ttlMs: number): Promise<boolean> {
    const extension = await this.renew(ttlMs);
    if (extension.outcome === "unknown") {
      throw extension.error;
    } else if (extension.outcome === "extended") {
      extendValidity(this.validity, extension.validity, this.#host.clock);
    }
    return extension.outcome === "extended";
  }

  /** The request carries a report for `inspect` if the engine keeps one. The report replaces the last one. */
  async #requestExtension(ttlMs: number): Promise<ExtendResult> {
    const host = this.#host;
    const { key, grant, fencingToken, validity } = this;
    const { info } = this.#options;
    validity.engineUntil = Math.max(validity.engineUntil ?? 0, host.clock.now() + ttlMs);
    const waiting = host.localWaitersToReport(this);
    const isLast = !host.mayHandOver(this);
    const hasReport = info !== undefined || grant.fencingCount > 1 || waiting !== undefined;
    const extension = await host.driver.extend({
      key,
      token: grant.token,
      fencingToken,
      ttlMs,
      info: hasReport ? { ...info, fencingToken, isLast, ...waiting } : undefined,
    });
    if (extension.outcome === "extended" && isLast) {
      this.#isLastConfirmed = true;
    }
    if (extension.outcome === "lost") {
      host.markLost(grant.token, extension.reason); // also a lease to which the grant was handed over during the request
    }
    return extension;
  }

  #end(state: "lost" | "released" | "transferred" | "downgraded", reason: LossReason | "transferred"): void {
    this.#state = state;
    this.#host.watchdog.unwatch(this.#watched);
    this.#hold?.end(reason, remainingValidityMs(this.validity, this.#host.clock));
  }
}
