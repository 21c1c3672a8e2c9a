/**
 * A lock of redis-semaphore. One object is for one caller at a time. If parallel callers share an object, each successful `acquire`
 * needs one `release`, and each release ends one lease.
 */
export interface Lock {
  readonly identifier: string;
  /** Whether this object holds the lock. Reads the clocks, so that it is right even if the event loop was blocked. */
  readonly isAcquired: boolean;
  /**
   * Waits for the lock.
   * @throws {TimeoutError} the lock is still held after the wait
   * @throws {EngineError} the server is unreachable after the wait
   * @throws the reason of `abortSignal`, which ends the wait
   */
  acquire(abortSignal?: AbortSignal): Promise<void>;
  /**
   * Waits for the lock like {@link Lock.acquire}.
   * @returns false if the lock is still held after the wait
   * @throws {EngineError} the server is unreachable after the wait
   * @throws the reason of `abortSignal`, which ends the wait
   */
  tryAcquire(abortSignal?: AbortSignal): Promise<boolean>;
  /**
   * Releases the lock. No effect if this object does not hold the lock.
   * @throws {EngineError} the server does not reply within 2 s; the release then continues in the background
   */
  release(): Promise<void>;
  /** Ends the renewals, so that the lock expires after `lockTimeout`. The expiry is not reported as a loss. */
  stopRefresh(): void;
}
