import { isLockError, type LeaseLostError } from "../../errors.ts";
import type { Lease, SerializedLease } from "../../lease/lease.ts";
import type { Locks } from "../../locks.ts";
import { elapsedSince, instantNow, systemClock } from "../../runtime/clock.ts";

/** One successful acquire. */
export interface Hold {
  readonly isValid: boolean;
  stopRenewing(): void;
  release(): Promise<void>;
}

/** A hold with a lease of this process. */
export class LeaseHold implements Hold {
  readonly #lease: Lease;
  #isLeftToExpire = false;

  /** @param reportLoss called at a loss; undefined: the expiry of the lease is no loss */
  constructor(lease: Lease, reportLoss: ((loss: LeaseLostError) => void) | undefined) {
    this.#lease = lease;
    if (reportLoss) {
      onLoss(lease.signal, (loss) => {
        if (!this.#isLeftToExpire) {
          reportLoss(loss);
        }
      });
    }
  }

  get isValid(): boolean {
    return this.#lease.remainingMs() > 0;
  }

  stopRenewing(): void {
    this.#isLeftToExpire = true;
    this.#lease.orphan();
  }

  async release(): Promise<void> {
    await this.#lease.release();
  }
}

/**
 * A hold without renewal, which another object may continue by its identifier. The lease is transferred at once. A lease of this process
 * could be handed over in memory while the other object uses the same grant.
 */
export class SharedHold implements Hold {
  readonly #locks: Locks;
  readonly #serialized: SerializedLease;
  readonly #remainingMs: number;
  readonly #createdAt = instantNow(systemClock);

  /** @param remainingMs the remaining validity of the lease */
  constructor(locks: Locks, serialized: SerializedLease, remainingMs: number) {
    this.#locks = locks;
    this.#serialized = serialized;
    this.#remainingMs = remainingMs;
  }

  /** Whether the TTL of this object has not passed. The other object may have released the lock already. */
  get isValid(): boolean {
    return elapsedSince(this.#createdAt, systemClock) < this.#remainingMs;
  }

  stopRenewing(): void {
    // Nothing renews the lease.
  }

  release(): Promise<void> {
    return releaseSerialized(this.#locks, this.#serialized);
  }
}

/** Releases a lease by its data. No effect if the lease has ended. */
export async function releaseSerialized(locks: Locks, serialized: SerializedLease): Promise<void> {
  try {
    const lease = await locks.adopt(serialized, { renew: false });
    await lease.release();
  } catch (error) {
    if (!isLockError(error, "lease-lost")) {
      throw error;
    }
  }
}

function onLoss(signal: AbortSignal, listener: (loss: LeaseLostError) => void): void {
  const report = (): void => listener(signal.reason as LeaseLostError);
  if (signal.aborted) {
    report();
  } else {
    signal.addEventListener("abort", report, { once: true });
  }
}
