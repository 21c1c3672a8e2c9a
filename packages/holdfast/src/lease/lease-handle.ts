import type { LeaseLostError, LossReason } from "../errors.ts";
import { checkTtl } from "../option-checks.ts";
import type { Validity } from "../validity.ts";
import { BaseLease, lossControllerOf } from "./base-lease.ts";
import type { InternalLease, SerializedLease, WriteLease } from "./lease.ts";

export type LossListener = (loss: LeaseLostError) => void;

/** The state that a handle shows and controls. */
export interface LeaseControl {
  readonly key: string;
  readonly owner: string;
  readonly fencingToken: bigint;
  readonly validity: Validity;
  /** The end of `maxHoldMs`, on the scale of `clock.now()`. */
  readonly endsAt: number;
  readonly ttlMs: number;
  readonly maxTtlMs: number;
  readonly isTransferred: boolean;
  readonly downgradedLease: InternalLease | undefined;
  remainingMs(): number;
  currentLoss(): LeaseLostError | undefined;
  throwIfLost(): void;
  /** Calls the listener when the lease is lost, also if it already is. With `ifLost: "continue"` the listener is never called. */
  onLoss(listener: LossListener): void;
  extend(ttlMs: number): Promise<void>;
  endAfter(ms: number): void;
  holdFor(ms: number): void;
  stopRenewing(): void;
  release(): Promise<boolean>;
  orphan(): void;
  transfer(): SerializedLease;
  downgrade(): Promise<LeaseHandle>;
}

/**
 * The lease in the hands of a caller. From its first renewal on, the library refers to it weakly until its `signal` is used, so that a
 * dropped handle ends the renewals.
 */
export class LeaseHandle extends BaseLease implements InternalLease, WriteLease {
  readonly #state: LeaseControl;
  #controller: AbortController | undefined;

  constructor(state: LeaseControl) {
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

  /** See {@link LeaseControl.onLoss}. */
  onLoss(listener: LossListener): void {
    this.#state.onLoss(listener);
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
