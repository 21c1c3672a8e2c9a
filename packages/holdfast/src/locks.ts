import type { Election } from "./kinds/election.ts";
import type { Latch, LatchOptions } from "./kinds/latch.ts";
import type { Lockable, LockedCallback, WithLockResult } from "./kinds/lockable.ts";
import type { OnceOptions, OnceResult } from "./kinds/once.ts";
import type { ReadWrite, Semaphore, SemaphoreOptions } from "./kinds/shared.ts";
import type { ReentrantOptions } from "./kinds/reentrant.ts";
import type { Lease, SerializedLease } from "./lease/lease.ts";
import type { HeldLease, LockEvent, LockState, NodeState } from "./lock-state.ts";
import type { AuditOptions, AuditPage } from "./operator/audit.ts";
import type { BreakOwnerOptions, BreakOwnerResult } from "./operator/break-owner.ts";
import type { BreakOptions } from "./operator/operator.ts";
import type { ProcessesOptions, ProcessList } from "./processes/process-state.ts";
import type { AcquireOptions, AdoptOptions, ListOptions, TryOptions } from "./options.ts";

/**
 * Locks on one engine. A mutex has at most one lease per key at a time, granted in order of arrival (`handover`).
 * Invalid options throw a `TypeError` or `RangeError` synchronously, before any I/O. An invalid key may come from a user, so it rejects
 * with the code `invalid-key`. Calls that return no promise throw that error.
 */
export interface Locks extends AsyncDisposable {
  /** The number of this `Locks` in its process, from 1. The diagnostics channels name it. */
  readonly instance: number;
  /**
   * Tries to acquire the lock once, without waiting.
   * @returns null only if another holder has the lock
   * @throws {EngineError} the engine does not reply within its command budget
   * @throws {QuorumError} too few nodes of a quorum reply
   */
  tryAcquire(key: string, options?: TryOptions): Promise<Lease | null>;
  /**
   * Waits for the lock, also during transient failures of the engine.
   * @throws {WaitTimeoutError} `waitMs` has passed, and the key is still held
   * @throws {EngineError} the engine is unreachable when `waitMs` has passed; at once if the failure is permanent
   * @throws {QuorumError} too few nodes of a quorum reply before `waitMs` has passed; at once if the failure is permanent
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Runs `work` under the lock, and always releases the lock afterwards. If `work` throws, its error is rethrown.
   * A failed release raises no error. A rejection does not mean that the effects of `work` do not exist.
   * @throws {LeaseLostError} the lease was lost before `work` ended; if `workEnded`, `result` is the value of `work`. Also if `work`
   * rejects because `lease.signal` aborted it, with an error whose `cause` is the reason of that signal; `workEnded` is then false
   */
  withLock<T>(key: string, work: LockedCallback<T>): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions, work: LockedCallback<T>): Promise<T>;
  tryWithLock<T>(key: string, work: LockedCallback<T>): Promise<WithLockResult<T>>;
  tryWithLock<T>(key: string, options: TryOptions, work: LockedCallback<T>): Promise<WithLockResult<T>>;
  /**
   * Runs `work` if no call has run it for this key within the last `keepMs`. So a schedule on many machines runs it once for each fire.
   * The key stays held until `keepMs` after the grant, also if the work was short or the process ends. It may stay held for
   * up to `ttlMs` longer if the process ends after the work and before that time.
   * If `work` throws, the key is released at once, and the error is rethrown: the next call runs its work.
   * @throws {LeaseLostError} the lease was lost before `work` ended, as from `withLock`
   * @throws {EngineError} the engine does not reply within its command budget
   * @throws {QuorumError} too few nodes of a quorum reply
   */
  once<T>(key: string, options: OnceOptions, work: LockedCallback<T>): Promise<OnceResult<T>>;
  /** A mutex: the calls above, bound to one key and its own defaults. */
  mutex(key: string, defaults?: AcquireOptions): Lockable;
  /**
   * A mutex that its holder may acquire again. Nested acquires are counted, and the last release frees the lock.
   * The holder is identified by the `withLock` around the call, or by `session`.
   */
  reentrant(key: string, defaults?: ReentrantOptions): Lockable<ReentrantOptions>;
  /**
   * A lock for many readers or one writer.
   * @throws {LockError} `unsupported`: the engine has no read-write locks
   */
  readWrite(key: string, defaults?: AcquireOptions): ReadWrite;
  /**
   * A semaphore with at most `limit` permits in use.
   * @throws {LockError} `unsupported`: the engine has no semaphores. A quorum has none, because three permits on each of five nodes
   * would satisfy five holders.
   */
  semaphore(key: string, options: SemaphoreOptions): Semaphore;
  /**
   * A latch. It opens when its count reaches 0, and stays open until its TTL has expired. The first call starts the count and the TTL.
   * @throws {LockError} `unsupported`: the engine has no latches. A quorum has none, because its nodes would count different attempts.
   */
  latch(key: string, options: LatchOptions): Latch;
  /** All of 1 to 64 keys under one lease, or none of them. The order of `keys` does not matter. */
  all(keys: readonly string[], defaults?: AcquireOptions): Lockable;
  /** A leader election among candidates. A term has no end unless `maxHoldMs` is given. */
  election(key: string, options?: AcquireOptions): Election;

  /** The present state of one key, with the waiters in the memory of this `Locks`. */
  inspect(key: string): Promise<LockState>;
  /**
   * Lists held locks and latches, in pages of about `limit` (default 100). A page ends early if the search takes long, so a page may
   * be empty. `cursor` is null on the last page.
   */
  list(options?: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }>;
  /**
   * Yields a snapshot, then coalesced changes, until the signal aborts. Each state counts the callers that wait in the memory of this
   * `Locks`. A change of these callers alone yields no event.
   */
  watch(
    target: string | { prefix: string },
    options?: { signal?: AbortSignal | undefined },
  ): AsyncIterable<LockEvent>;
  /**
   * Checks at the engine whether the lease with this fencing token holds the key now.
   *
   * - `current`: the grant of the lease holds the key. A key that `minHoldMs` or `once` keeps after the work still has its grant.
   *
   * - `stale`: the grant was released, has expired, was broken, the lease was handed over, or never existed.
   *
   * - `unknown`: the engine cannot decide. A process with local waiters acquires several fencing tokens with one grant, and uses the
   *   next one at each hand-over in memory. The engine learns the token in use when hand-overs have ended, which is `handover.maxMs`
   *   (100 ms) after the grant. Until then other processes get `unknown`. The `Locks` with the lease always gets `current` or
   *   `stale`. A lone caller, or `handover: false`, never causes `unknown`.
   *
   * A resource that accepts only `current` rejects every earlier holder. The lease may still end between the reply and the write.
   * @throws {EngineError} the engine does not reply
   * @throws {QuorumError} too few nodes of a quorum reply
   */
  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown">;
  /**
   * Asks the processes with this library on the same engine and prefix for their leases and waits, and for their callers in memory.
   * Redis and a quorum of Redis servers ask by notifications. A process registers about a second after its first acquire, and once a
   * minute. The other engines report this process only, see `scope`. A service answers for its own engine.
   * The answer contains no secret. A process whose answer is late or refused has `answered: false`.
   * @throws {EngineError} the engine is unavailable
   */
  processes(options?: ProcessesOptions): Promise<ProcessList>;
  /** The state of each server, as reported by the server and as seen by this process. */
  nodes(): Promise<NodeState[]>;
  /** Ends another's grant by force, as an operator. @returns whether the grant with this fencing token held the key */
  breakLock(key: string, options: BreakOptions): Promise<boolean>;
  /**
   * Ends the grants of one owner by force, for example after the crash of its process. The call searches the owner's grants and breaks
   * each by its fencing token, 16 at a time. A grant that the owner receives later is not broken.
   * @param owner the exact `owner` that `inspect` and `list` show
   * @throws {EngineError | QuorumError} the engine does not reply to the search; the result of each break is in `results` instead
   */
  breakOwner(owner: string, options: BreakOwnerOptions): Promise<BreakOwnerResult>;
  /**
   * Lists the last breaks, newest first, in pages. The engine keeps the last 1 000 records, and writes each in one step with its break.
   * A call that broke nothing has no record.
   * @throws {LockError} `unsupported`: the engine keeps no audit
   * @throws {EngineError} the engine does not reply
   */
  audit(options?: AuditOptions): Promise<AuditPage>;
  /** The leases that callers of this `Locks` hold now, without I/O. A lease whose handle was dropped is listed until it expires. */
  held(): readonly HeldLease[];
  /**
   * Continues a lease from {@link Lease.transfer}. The engine verifies the grant, and does not extend it.
   * @throws {LeaseLostError} the grant has ended
   * @throws {EngineError} the engine does not reply, or fewer replicas than required have acknowledged the grant. The call can be repeated.
   */
  adopt(serialized: SerializedLease, options?: AdoptOptions): Promise<Lease>;
  /**
   * Rejects all waiters with `closed` and releases all leases, within `closeTimeoutMs`. Later calls fail with `closed`.
   * The last `Locks` of a driver also closes the driver.
   */
  close(): Promise<void>;
}
