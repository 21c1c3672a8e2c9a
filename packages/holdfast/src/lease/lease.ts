import type { LossReason } from "../errors.ts";

/**
 * Time-bound ownership in the caller's hand. While `remainingMs()` is positive nobody else holds the lock.
 * Loss is told by `signal`, before the validity ends unless the event loop is blocked then, and by {@link Lease.throwIfLost}, which
 * needs no timer to have run.
 */
export interface Lease extends AsyncDisposable {
  /** Of several keys: the first in sorted order. */
  readonly key: string;
  readonly keys: readonly string[];
  readonly owner: string;
  /**
   * Larger than every earlier one of this key. Of several keys: that of `key`. Of a semaphore: unique, and larger than those of earlier
   * grants by the engine; a lease that was handed over in its process has the next one of its grant.
   */
  readonly fencingToken: bigint;
  readonly fencingTokens: ReadonlyMap<string, bigint>;
  /**
   * Aborted at loss, with a `LeaseLostError` as its reason. Not aborted by a release. Where nothing prolongs the lease it aborts at
   * least 2 ms before the validity ends, and earlier where timers of this process run late, by at most `ttlMs / 20` and 50 ms.
   */
  readonly signal: AbortSignal;
  /** End of safe use on the scale of `performance.now()`. A renewal moves it. */
  readonly validUntil: number;
  /** Milliseconds of safe use that are left; 0 after a loss or a release. */
  remainingMs(): number;
  /**
   * A checkpoint between steps: compares clocks itself, so it is right even where the event loop was blocked and no timer ran.
   * @throws {LeaseLostError} when the lease is lost; after a release with reason `released`
   */
  throwIfLost(): void;
  /**
   * Prolongs the lease to at least `ttlMs` from now (milliseconds, 100 to 86 400 000; by default its own TTL). Never shortens it.
   * @throws {LeaseLostError} when it is lost
   * @throws {EngineError | QuorumError} when the engine does not answer
   */
  extend(ttlMs?: number): Promise<void>;
  /**
   * Gives the lock back. A second call answers the same.
   * @returns whether it was still ours; false: it had been lost
   * @throws {EngineError | QuorumError} when the engine does not answer within its command budget, which counts from this call; the
   * release then goes on in the background until the TTL has passed
   */
  release(): Promise<boolean>;
  /** Stops renewing and lets it expire. */
  orphan(): void;
  /**
   * Gives the lease to whoever adopts the result, here or in another process. It is a secret: whoever has it holds the lock.
   * Renewal and hand-over end here, and `release()` here answers false.
   */
  transfer(): SerializedLease;
  /** Safe to log: no secret. */
  toJSON(): {
    key: string;
    keys: readonly string[];
    owner: string;
    fencingToken: string;
    remainingMs: number;
  };
}

/** A lease on its way to another process. Plain JSON, and secret. */
export interface SerializedLease {
  readonly version: 1;
  readonly key: string;
  readonly token: string;
  readonly fencingToken: string;
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ttlMs: number;
}

/** The lease of a writer. */
export interface WriteLease extends Lease {
  /**
   * Lets readers in, and goes on as a reader on the same grant, with the same fencing token. This lease ends by that without being
   * lost; its `release()`, so also the end of its `withLock`, releases the reader.
   * @throws {LeaseLostError} when it is lost
   */
  downgrade(): Promise<Lease>;
}

/** A lease as the library itself sees it. */
export interface InternalLease extends Lease {
  readonly isTransferred: boolean;
  /** Whether it holds its keys: itself, or what it became by a downgrade. */
  readonly isInForce: boolean;
  /** How it was lost, undefined while it is not; looks at the clocks. */
  currentLoss(): LossReason | undefined;
}
