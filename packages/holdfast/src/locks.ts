import type { Election } from "./kinds/election.ts";
import type { Latch, LatchOptions } from "./kinds/latch.ts";
import type { Lockable, LockedCallback, WithLockResult } from "./kinds/lockable.ts";
import type { OnceOptions } from "./kinds/once.ts";
import type { ReadWrite, Semaphore, SemaphoreOptions } from "./kinds/shared.ts";
import type { ReentrantOptions } from "./kinds/reentrant.ts";
import type { Lease, SerializedLease } from "./lease/lease.ts";
import type { HeldLease, LockEvent, LockState, NodeState } from "./lock-state.ts";
import type { AuditOptions, AuditPage } from "./operator/audit.ts";
import type { BreakOwnerOptions, BreakOwnerResult } from "./operator/break-owner.ts";
import type { BreakOptions } from "./operator/operator-calls.ts";
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
   * @example
   * ```ts
   * const lease = await locks.tryAcquire("order:555");
   * if (lease === null) return "another process has it";
   * try {
   *   await charge();
   * } finally {
   *   await lease.release();
   * }
   * ```
   */
  tryAcquire(key: string, options?: TryOptions): Promise<Lease | null>;
  /**
   * Waits for the lock, also during transient failures of the engine.
   * @throws {WaitTimeoutError} `waitMs` has passed, and the key is still held
   * @throws {EngineError} the engine is unreachable when `waitMs` has passed; at once if the failure is permanent
   * @throws {QuorumError} too few nodes of a quorum reply before `waitMs` has passed; at once if the failure is permanent
   * @example
   * ```ts
   * await using lease = await locks.acquire("order:555", { ttlMs: 30_000, waitMs: 5_000, reason: "charge" });
   * await charge({ signal: lease.signal });
   * ```
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Runs `work` under the lock, and always releases the lock afterwards. If `work` throws, its error is rethrown.
   * A failed release raises no error. A rejection does not mean that the effects of `work` do not exist.
   * @throws {LeaseLostError} the lease was lost before `work` ended; if `workEnded`, `result` is the value of `work`. Also if `work`
   * rejects because `lease.signal` aborted it, with an error whose `cause` is the reason of that signal; `workEnded` is then false
   * @example
   * ```ts
   * await locks.withLock("order:555", async (lease) => {
   *   await charge(order, { signal: lease.signal }); // aborts if the lock is lost
   * });
   * ```
   */
  withLock<T>(key: string, work: LockedCallback<T>): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions, work: LockedCallback<T>): Promise<T>;
  /**
   * Runs `work` under the lock if it is free, without waiting. Otherwise the result names the holder, if it is known. As `withLock` otherwise.
   * @example
   * ```ts
   * const report = await locks.tryWithLock("report", () => build());
   * console.log(report.ran ? report.value : `${report.holder?.owner} builds it`);
   * ```
   */
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
   * @example
   * ```ts
   * // On every machine, each night: one of them cleans up.
   * await locks.once("nightly", { keepMs: 60_000 }, () => cleanUp());
   * ```
   */
  once<T>(key: string, options: OnceOptions, work: LockedCallback<T>): Promise<WithLockResult<T>>;
  /**
   * A mutex: the calls above, bound to one key and its own defaults.
   * @example
   * ```ts
   * const checkout = locks.mutex(`cart:${id}`, { waitMs: 2_000 });
   * await checkout.withLock(() => pay());
   * ```
   */
  mutex(key: string, defaults?: AcquireOptions): Lockable;
  /**
   * A mutex that its holder may acquire again. Nested acquires are counted, and the last release frees the lock.
   * The holder is identified by the `withLock` around the call, or by `session`.
   * @example
   * ```ts
   * const tree = locks.reentrant("tree");
   * await tree.withLock(() => tree.withLock(() => rebalance())); // a mutex would reject the inner call: `self-deadlock`
   * ```
   */
  reentrant(key: string, defaults?: ReentrantOptions): Lockable<ReentrantOptions>;
  /**
   * A lock for many readers or one writer.
   * @throws {LockError} `unsupported`: the engine has no read-write locks
   * @example
   * ```ts
   * const catalogue = locks.readWrite("catalogue");
   * const rows = await catalogue.read.withLock(() => load()); // many at once
   * await catalogue.write.withLock(() => replace(rows)); // alone
   * ```
   */
  readWrite(key: string, defaults?: AcquireOptions): ReadWrite;
  /**
   * A semaphore with at most `limit` permits in use.
   * @throws {LockError} `unsupported`: the engine has no semaphores. A quorum has none, because three permits on each of five nodes
   * would satisfy five holders.
   * @example
   * ```ts
   * const exports = locks.semaphore("exports", { limit: 4 });
   * await exports.withLock(() => runExport()); // at most four at once, in all processes
   * ```
   */
  semaphore(key: string, options: SemaphoreOptions): Semaphore;
  /**
   * A latch. It opens when its count reaches 0, and stays open until its TTL has expired. The first call starts the count and the TTL.
   * @throws {LockError} `unsupported`: the engine has no latches. A quorum has none, because its nodes would count different attempts.
   * @example
   * ```ts
   * const shards = locks.latch(`import:${id}`, { count: 8, ttlMs: 3_600_000 });
   * await shards.countDown({ attemptId: `shard ${shard}` }); // in each worker, after its shard
   * await shards.wait({ waitMs: 600_000 }); // in the process that goes on after all of them
   * ```
   */
  latch(key: string, options: LatchOptions): Latch;
  /**
   * All of 1 to 64 keys under one lease, or none of them. The order of `keys` does not matter.
   * @example
   * ```ts
   * await locks.all([`account:${from}`, `account:${to}`]).withLock(() => transfer());
   * ```
   */
  all(keys: readonly string[], defaults?: AcquireOptions): Lockable;
  /**
   * A leader election among candidates. A term has no end unless `maxHoldMs` is given.
   * @example
   * ```ts
   * const term = await locks.election("scheduler").campaign(); // waits until this process leads
   * while (!term.isLost) await runDueJobs({ signal: term.signal });
   * ```
   */
  election(key: string, options?: AcquireOptions): Election;

  /**
   * The present state of one key, with the waiters in the memory of this `Locks`.
   * @example
   * ```ts
   * const { holders, waiterCount } = await locks.inspect("order:555");
   * console.log(holders[0]?.owner, holders[0]?.remainingMs, waiterCount);
   * ```
   */
  inspect(key: string): Promise<LockState>;
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
   * @example
   * ```ts
   * // In a service that gets the fencing token with each request:
   * if ((await locks.checkFence("order:555", fencingToken)) !== "current") throw new Error("a former holder");
   * ```
   */
  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown">;
  /** The calls of an operator: list, watch, break, audit, and the state of servers and processes. */
  readonly admin: LocksAdmin;
  /**
   * The leases that callers of this `Locks` hold now, without I/O. A lease whose handle was dropped is listed until it expires.
   * @example
   * ```ts
   * for (const { key, heldMs } of locks.held()) console.log(key, heldMs);
   * ```
   */
  held(): readonly HeldLease[];
  /**
   * Continues a lease from {@link Lease.transfer}. The engine verifies the grant. It extends the grant only if it does not know the
   * remaining time, as ZooKeeper and Nacos.
   * @throws {LeaseLostError} the grant has ended
   * @throws {EngineError} the engine does not reply, or fewer replicas than required have acknowledged the grant. The call can be repeated.
   * @example
   * ```ts
   * const data = lease.transfer(); // in the process that gives the work away
   * queue.send({ job, data });
   * const adopted = await locks.adopt(received.data); // in the process that continues it
   * ```
   */
  adopt(serialized: SerializedLease, options?: AdoptOptions): Promise<Lease>;
  /**
   * Rejects all waiters with `closed` and releases all leases, within `closeTimeoutMs`. Later calls fail with `closed`.
   * The last `Locks` of a driver also closes the driver.
   * @example
   * ```ts
   * process.once("SIGTERM", () => void locks.close().then(() => client.quit()));
   * ```
   */
  close(): Promise<void>;
}

/** The calls of an operator, as {@link Locks.admin}. They see and end the grants of all processes. */
export interface LocksAdmin {
  /**
   * Lists held locks and latches, in pages of about `limit` (default 100). A page ends early if the search takes long, so a page may
   * be empty. `cursor` is null on the last page.
   * @example
   * ```ts
   * for (let cursor: string | null | undefined; cursor !== null;) {
   *   const page: Awaited<ReturnType<LocksAdmin["list"]>> = await locks.admin.list({ prefix: "order:", cursor });
   *   for (const { key, holders } of page.locks) console.log(key, holders[0]?.owner);
   *   cursor = page.cursor;
   * }
   * ```
   */
  list(options?: ListOptions): Promise<{ locks: LockState[]; cursor: string | null }>;
  /**
   * Yields a snapshot, then coalesced changes, until the signal aborts. Each state counts the callers that wait in the memory of this
   * `Locks`. A change of these callers alone yields no event.
   * @example
   * ```ts
   * for await (const { type, key, state } of locks.admin.watch({ prefix: "order:" }, { signal })) {
   *   console.log(type, key, state.holders[0]?.owner);
   * }
   * ```
   */
  watch(
    target: string | { prefix: string },
    options?: { signal?: AbortSignal | undefined },
  ): AsyncIterable<LockEvent>;
  /**
   * Asks the processes with this library on the same engine and prefix for their leases and waits, and for their callers in memory.
   * Redis and a quorum of Redis servers ask by notifications. A process registers about a second after its first acquire, and once a
   * minute. The other engines report this process only, see `scope`. A service answers for its own engine.
   * The answer contains no secret. A process whose answer is late or refused has `answered: false`.
   * @throws {EngineError} the engine is unavailable
   * @example
   * ```ts
   * const { processes, complete } = await locks.admin.processes({ key: "order:555" });
   * console.log(processes.map(({ owner }) => owner), complete);
   * ```
   */
  processes(options?: ProcessesOptions): Promise<ProcessList>;
  /**
   * The state of each server, as reported by the server and as seen by this process.
   * @example
   * ```ts
   * const unreachable = (await locks.admin.nodes()).filter((node) => !node.reachable);
   * ```
   */
  nodes(): Promise<NodeState[]>;
  /**
   * Ends another's grant by force. @returns whether the grant with this fencing token held the key
   * @example
   * ```ts
   * const { holders } = await locks.inspect("order:555");
   * const fencingToken = holders[0]?.fencingToken;
   * if (fencingToken !== undefined) {
   *   await locks.admin.breakLock("order:555", { fencingToken, reason: "stuck for 2 h" });
   * }
   * ```
   */
  breakLock(key: string, options: BreakOptions): Promise<boolean>;
  /**
   * Ends the grants of one owner by force, for example after the crash of its process. The call searches the owner's grants and breaks
   * each by its fencing token, 16 at a time. A grant that the owner receives later is not broken.
   * @param owner the exact `owner` that `inspect` and `list` show
   * @throws {EngineError | QuorumError} the engine does not reply to the search; the result of each break is in `results` instead
   * @example
   * ```ts
   * const { results } = await locks.admin.breakOwner("worker@host-7:4711", { reason: "the machine is gone" });
   * console.log(results.filter(({ broken }) => broken === true).length);
   * ```
   */
  breakOwner(owner: string, options: BreakOwnerOptions): Promise<BreakOwnerResult>;
  /**
   * Lists the last breaks, newest first, in pages. The engine keeps the last 1 000 records, and writes each in one step with its break.
   * A call that broke nothing has no record.
   * @throws {LockError} `unsupported`: the engine keeps no audit
   * @throws {EngineError} the engine does not reply
   * @example
   * ```ts
   * const { records } = await locks.admin.audit({ key: "order:555" });
   * for (const { at, by, reason } of records) console.log(at, by, reason);
   * ```
   */
  audit(options?: AuditOptions): Promise<AuditPage>;
}
