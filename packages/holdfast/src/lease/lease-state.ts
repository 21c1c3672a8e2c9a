import { publish } from "../diagnostics.ts";
import type { ExtendResult, Grant } from "../driver.ts";
import { LeaseLostError, unsupportedLease, type LossReason } from "../errors.ts";
import type { Holder } from "../lock-state.ts";
import { remainingValidityMs } from "../validity.ts";
import {
  downgradeGrant,
  extendGrant,
  releaseLostGrant,
  requestExtension,
  verifyGrant,
} from "./engine-requests.ts";
import type { Handoverable, HandoverRun } from "./handover-run.ts";
import { LeaseGrant } from "./lease-grant.ts";
import { LeaseHandle, type LeaseControl, type LossListener } from "./lease-handle.ts";
import type { CreatedLease, LeaseHost, LeaseStateOptions } from "./lease-host.ts";
import { HoldReport, reportLeakedLease, traceRelease } from "./lease-trace.ts";
import type { SerializedLease } from "./lease.ts";
import { serializeLease } from "./serialized-lease.ts";
import type { Renewable, WatchedLease } from "./watchdog.ts";

const shortestTtlMs = 100;

type Host = LeaseHost<LeaseState>;
type Created = CreatedLease<LeaseState>;

/** The state of a lease, from its grant to its end. Leases that were handed over in memory share one grant and its validity. */
export class LeaseState extends LeaseGrant implements Renewable, LeaseControl, Handoverable<LeaseState> {
  handoverRun: HandoverRun<LeaseState> | undefined;
  readonly #host: Host;
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

  private constructor(host: Host, grant: Grant, options: LeaseStateOptions, fencingToken: bigint) {
    super(host, grant, options, fencingToken);
    this.#heldUntil = this.heldFrom + (options.minHoldMs ?? 0);
    this.#host = host;
    this.#options = options;
    this.#isRenewed = options.renew;
    this.#hold = HoldReport.start(this, options, host.clock);
    this.#watched = host.watchdog.watch(this);
  }

  /** Holds a grant. Nothing else in the library may keep the handle, so that its garbage collection reveals a leak. */
  static create(host: Host, grant: Grant, options: LeaseStateOptions, fencingToken?: bigint): Created {
    const state = new LeaseState(host, grant, options, fencingToken ?? grant.fencingToken);
    const lease = new LeaseHandle(state);
    state.#lease = lease;
    return { state, lease };
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

  throwIfLost(): void {
    const loss = this.currentLoss();
    if (loss) {
      throw loss;
    }
    if (this.#state === "released" || this.#state === "transferred" || this.#state === "downgraded") {
      throw new LeaseLostError(this.key, "released", this.#host.clock.wall());
    }
  }

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
    if (await extendGrant(this.#host, this, ttlMs, this.#options.info)) {
      this.isClaim &&= ttlMs < this.ttlMs;
      this.#host.watchdog.reschedule(this.#watched);
    }
    this.throwIfLost();
  }

  /** Checks the grant at the engine, because the notification of its loss may have been missed. */
  verify(): Promise<void> {
    return verifyGrant(this.#host, this.grant);
  }

  renew(): Promise<ExtendResult> {
    return requestExtension(this.#host, this, this.ttlMs, this.#options.info);
  }

  claimConfirmed(): void {
    this.isClaim = false;
  }

  /** One ms after the time for hand-overs, because the run of hand-overs starts shortly after the lease. */
  get reportAt(): number {
    const isDue = this.grant.fencingCount > 1 && !this.#isLastConfirmed;
    return isDue ? this.heldFrom + this.#host.handoverMs + 1 : Infinity;
  }

  lastConfirmed(): void {
    this.#isLastConfirmed = true;
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
    const grant = { ...this.grant, isClaim: this.isClaim };
    const lockMode = { kind: "read-write", mode: "read" } as const;
    const now = this.#host.clock.now();
    const hold = { maxHoldMs: this.endsAt - now, minHoldMs: Math.max(0, this.#heldUntil - now) };
    const options = { ...this.#options, lockMode, ...hold };
    const { state, lease } = LeaseState.create(this.#host, grant, options, this.fencingToken);
    this.#downgradedLease = lease;
    await downgradeGrant(this.#host, this.grant);
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
      return releaseLostGrant(this.#host, this.grant, this.#options.isAdopted);
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
    return (
      isKept || extendGrant(this.#host, this, Math.max(shortestTtlMs, Math.ceil(ms)), this.#options.info)
    );
  }

  #end(state: "lost" | "released" | "transferred" | "downgraded", reason: LossReason | "transferred"): void {
    this.#state = state;
    this.#host.watchdog.unwatch(this.#watched);
    this.#hold?.end(reason, remainingValidityMs(this.validity, this.#host.clock));
  }
}
