import type { Election } from "./kinds/election.ts";
import type { Latch, LatchOptions } from "./kinds/latch.ts";
import type { Lockable, LockedCallback, WithLockResult } from "./kinds/lockable.ts";
import type { ReadWrite } from "./kinds/read-write.ts";
import type { ReentrantOptions } from "./kinds/reentrant.ts";
import type { Semaphore, SemaphoreOptions } from "./kinds/semaphore.ts";
import type { Lease, SerializedLease } from "./lease/lease.ts";
import type { LockEvent, LockState, NodeState } from "./lock-state.ts";
import type { AcquireOptions, AdoptOptions, ListOptions, TryOptions } from "./options.ts";

/**
 * Locks on one engine. Grants at most one lease per key at a time, in order of arrival.
 * Bad options and keys throw `TypeError` or `RangeError` synchronously, before any I/O.
 */
export interface Locks extends AsyncDisposable {
  /**
   * Asks once.
   * @returns null where another holds the lock; everything else is an error
   * @throws {EngineError} when the engine does not answer within its command budget
   * @throws {QuorumError} when too few nodes of a quorum do
   */
  tryAcquire(key: string, options?: TryOptions): Promise<Lease | null>;
  /**
   * Waits for the lock, through transient failures of the engine.
   * @throws {WaitTimeoutError} when `waitMs` passes and the key is still held
   * @throws {EngineError} when the engine cannot be reached until `waitMs` has passed; at once where that cannot pass by itself
   * @throws {QuorumError} the same of a quorum
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Runs the work under the lock and releases in every case. The work's own error wins over whatever the release does.
   * @throws {LeaseLostError} with the work's value as `result`, when the lease was lost before the work ended
   */
  withLock<T>(key: string, work: LockedCallback<T>): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions, work: LockedCallback<T>): Promise<T>;
  tryWithLock<T>(key: string, work: LockedCallback<T>): Promise<WithLockResult<T>>;
  tryWithLock<T>(key: string, options: TryOptions, work: LockedCallback<T>): Promise<WithLockResult<T>>;
  /** The calls above with the key, and defaults of their own, in front. */
  mutex(key: string, defaults?: AcquireOptions): Lockable;
  /**
   * A mutex that its holder may acquire again: nested acquires are counted, and the lock is free at the last release. Who asks is
   * told by the `withLock` around the call, or by `session`.
   */
  reentrant(key: string, defaults?: ReentrantOptions): Lockable<ReentrantOptions>;
  /**
   * Many readers or one writer.
   * @throws {LockError} `unsupported` where the engine has none
   */
  readWrite(key: string, defaults?: AcquireOptions): ReadWrite;
  /**
   * At most `limit` permits at once.
   * @throws {LockError} `unsupported` where the engine has none, as a quorum: three permits on each of five nodes satisfy five holders
   */
  semaphore(key: string, options: SemaphoreOptions): Semaphore;
  /**
   * Opens when it was counted down to zero, and stays open until its TTL is over. The first use begins both.
   * @throws {LockError} `unsupported` where the engine has none, as a quorum: its nodes would count different attempts
   */
  latch(key: string, options: LatchOptions): Latch;
  /** Every key or none, at most 64, under one lease; the order in which they are named does not matter. */
  all(keys: readonly string[], defaults?: AcquireOptions): Lockable;
  /** Who of many candidates leads. Terms have no end unless `maxHoldMs` says so. */
  election(key: string, options?: AcquireOptions): Election;

  inspect(key: string): Promise<LockState>;
  /**
   * Locks that are held now, and latches. Pages of about `limit` (default 100). A page ends early where the search takes long, so it
   * may be empty; `cursor` null: that was the last.
   */
  list(options?: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }>;
  /**
   * A snapshot, then changes, coalesced; ends with the signal. Each state counts the callers that wait in memory in this `Locks`; a change
   * of those alone makes no event.
   */
  watch(
    target: string | { prefix: string },
    options?: { signal?: AbortSignal | undefined },
  ): AsyncIterable<LockEvent>;
  /**
   * Asks the engine whether the lease with this fencing token holds the key now.
   *
   * - `current`: it does.
   * - `stale`: it does not. It was released, has expired, was broken or handed over, or there was none with this token.
   * - `unknown`: the engine cannot say. A process whose callers wait for each other takes several numbers with one grant, and passes the
   *   lease on from number to number in memory. The engine learns the present one at the next renewal. The `Locks` that has the lease
   *   knows, and so answers `current` or `stale`; other processes get `unknown` while one of the later numbers may be in use. There is
   *   no such time for the lease of a lone caller, and none with `handover: false`.
   *
   * A resource that refuses all but `current` accepts no holder of the past. The lease may end between the answer and the write.
   * @throws {EngineError} when the engine does not answer
   * @throws {QuorumError} when too few nodes of a quorum answer to know
   */
  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown">;
  /** What each server says of itself, and our view of it. */
  nodes(): Promise<NodeState[]>;
  /** An operator's force: ends the grant that carries the token. Answers whether it was the present one. */
  breakLock(key: string, options: { fencingToken: bigint; reason: string }): Promise<boolean>;
  /**
   * Takes over a lease that was transferred; verified at the engine, not extended by that.
   * @throws {LeaseLostError} when it is gone
   */
  adopt(serialized: SerializedLease, options?: AdoptOptions): Promise<Lease>;
  /** Waiters reject `closed`, leases are released, all within `closeTimeoutMs`. The last `Locks` of a driver closes it. */
  close(): Promise<void>;
}
