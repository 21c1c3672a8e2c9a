import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import { LeaseLostError, LockError, type LossReason } from "../errors.ts";
import { BaseLease, lossControllerOf } from "../lease/base-lease.ts";
import type { InternalLease, Lease, SerializedLease } from "../lease/lease.ts";

/** One lease at the engine, and how many leases of its owners stand on it. */
export class ReentrantHold {
  readonly coordinator: LocalCoordinator;
  readonly base: InternalLease;
  /** What callers that may join it say; undefined: none may. */
  readonly name: string | undefined;
  /** Called when the last of its leases has been released. */
  ended: () => void = () => undefined;
  /** It is left to expire: a lease that joined it now would not be renewed. */
  isOrphaned = false;
  count = 0;

  constructor(coordinator: LocalCoordinator, base: InternalLease, name?: string) {
    this.coordinator = coordinator;
    this.base = base;
    this.name = name;
  }

  /** All of its leases are released, or it was lost. A late answer to a renewal does not revive a lease that was reported as lost. */
  get isEnded(): boolean {
    return this.count === 0 || this.base.currentLoss() !== undefined || this.base.remainingMs() === 0;
  }

  /** The last lease that leaves releases the base. */
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

/** A lease that shares its base with others of this process. The lock is free when the last of them is released. */
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

  /** Of all leases that share the base. */
  orphan(): void {
    this.hold.isOrphaned = true;
    this.#base.orphan();
  }

  transfer(): SerializedLease {
    if (this.hold.count > 1) {
      const message = `"${this.key}" is held ${this.hold.count} times here; only the last of its leases can be transferred`;
      throw new LockError(message, { code: "unsupported", key: this.key });
    }
    this.throwIfLost();
    return this.#base.transfer();
  }

  get #base(): InternalLease {
    return this.hold.base;
  }
}

/** One of several leases that repeats of a named attempt have on one grant. */
export class SharedLease extends NestedLease {
  /** @throws {LockError} `unsupported`: another owner may write with this grant */
  downgrade(): Promise<Lease> {
    const message = `A repeat of the same attempt may have the lease of "${this.key}"; it cannot be downgraded`;
    return Promise.reject(new LockError(message, { code: "unsupported", key: this.key }));
  }
}
