import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { LeaseLostError, LockError, type LossReason } from "../errors.ts";
import { BaseLease, lossControllerOf } from "../lease/base-lease.ts";
import type { InternalLease, Lease, SerializedLease } from "../lease/lease.ts";

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
export class SharedLease extends NestedLease {
  /** @throws {LockError} `unsupported`: a repeat may write with the same grant */
  downgrade(): Promise<Lease> {
    const message = `A repeat of the same attempt may have the lease of "${this.key}"; it cannot be downgraded`;
    return Promise.reject(new LockError(message, { code: "unsupported", key: this.key }));
  }
}
