import { LockError, type LeaseLostError, type LossReason } from "../errors.ts";
import { BaseLease, lossControllerOf } from "../lease/base-lease.ts";
import type { LeaseHandle } from "../lease/lease-handle.ts";
import type { InternalLease, SerializedLease } from "../lease/lease.ts";
import type { ResolvedAcquire } from "../options.ts";

/** One lease on several keys. If one key is lost, the lease is lost, and the other keys expire unless the lease is released. */
export class MultiLease extends BaseLease implements InternalLease {
  readonly #leases: readonly LeaseHandle[];
  readonly #ifLost: ResolvedAcquire["ifLost"];
  #controller: AbortController | undefined;
  #loss: LeaseLostError | undefined;
  #releasing: Promise<boolean> | undefined;

  constructor(leases: readonly LeaseHandle[], { ifLost, minHoldMs }: ResolvedAcquire) {
    super();
    this.#leases = leases;
    this.#ifLost = ifLost;
    const weak = new WeakRef(this); // so that a dropped handle ends the renewals
    for (const lease of leases) {
      lease.holdFor(minHoldMs);
      lease.onLoss((loss) => {
        const multiLease = weak.deref();
        if (multiLease) {
          multiLease.#memberLost(loss);
        }
      });
    }
  }

  get key(): string {
    return this.#first.key;
  }

  get keys(): readonly string[] {
    return this.#leases.map(({ key }) => key);
  }

  get owner(): string {
    return this.#first.owner;
  }

  get fencingToken(): bigint {
    return this.#first.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, bigint> {
    return new Map(this.#leases.map(({ key, fencingToken }) => [key, fencingToken]));
  }

  get validUntil(): number {
    return Math.min(...this.#leases.map(({ validUntil }) => validUntil));
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = lossControllerOf(this);
      for (const lease of this.#leases) {
        lease.onLoss((loss) => this.#memberLost(loss)); // a strong reference, because a caller may wait for the signal alone
      }
      this.#abort();
    }
    return this.#controller.signal;
  }

  get isTransferred(): boolean {
    return false;
  }

  currentLoss(): LossReason | undefined {
    return this.#leases.map((lease) => lease.currentLoss()).find((reason) => reason !== undefined);
  }

  remainingMs(): number {
    return Math.min(...this.#leases.map((lease) => lease.remainingMs()));
  }

  throwIfLost(): void {
    for (const lease of this.#leases) {
      lease.throwIfLost();
    }
  }

  async extend(ttlMs?: number): Promise<void> {
    this.throwIfLost();
    const extensions = this.#leases.map((lease) => lease.extend(ttlMs));
    await Promise.allSettled(extensions);
    this.throwIfLost();
    await Promise.all(extensions);
  }

  release(): Promise<boolean> {
    this.#releasing ??= this.#release();
    return this.#releasing;
  }

  orphan(): void {
    for (const lease of this.#leases) {
      lease.orphan();
    }
  }

  transfer(): SerializedLease {
    const message = `A lease of several keys cannot be transferred; acquire "${this.key}" alone to transfer it`;
    throw new LockError(message, { code: "unsupported", key: this.key });
  }

  get #first(): LeaseHandle {
    return this.#leases[0] as LeaseHandle;
  }

  async #release(): Promise<boolean> {
    const releases = this.#leases.map((lease) => lease.release());
    await Promise.allSettled(releases);
    return (await Promise.all(releases)).every(Boolean);
  }

  #memberLost(loss: LeaseLostError): void {
    if (this.#loss || this.#releasing) {
      return;
    }
    this.#loss = loss;
    for (const lease of this.#leases) {
      lease.orphan(); // no effect on a lost lease
    }
    this.#abort();
  }

  #abort(): void {
    if (this.#loss && this.#ifLost === "abort") {
      this.#controller?.abort(this.#loss);
    }
  }
}
