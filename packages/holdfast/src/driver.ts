import type { Clock } from "./runtime/clock.ts";
import type { LossReason } from "./errors.ts";
import type { Random } from "./runtime/random.ts";
import type { FenceState, Holder, LockEvent, LockKind, LockState, NodeState } from "./lock-state.ts";
import type { AuditPage, AuditQuery, BreakNote, BreakOutcome } from "./operator/audit.ts";
import type { ProcessDirectory } from "./processes/process-state.ts";
import type { Validity } from "./validity.ts";

/** How a grant shares its key with other grants. Without a mode the key is a mutex, and its grant is exclusive. */
export type LockMode =
  | { readonly kind: "read-write"; readonly mode: "read" | "write" }
  | {
      readonly kind: "semaphore";
      readonly permits: number;
      readonly limit: number;
      /** The request waited in its process after grants of this limit. It accepts the limit in force at its own grant. */
      readonly hasWaited?: boolean;
    };

/** The abilities of an engine. The core relies on them and never probes. */
export interface Capabilities {
  /** The name of the engine in diagnostics and metrics, such as `redis`. @defaultValue "other" */
  readonly engine?: string | undefined;
  readonly kinds: readonly LockKind[];
  /** Why the engine lacks other kinds, for error messages. Absent: no reason is known. */
  readonly unsupported?: Readonly<Partial<Record<LockKind, string>>>;
  /** The reach of exclusion: one process, one server, a majority of servers, a consensus protocol, or a database. */
  readonly guarantee: "process" | "server" | "quorum" | "consensus" | "database";
  /** Whether waiters get notifications, or poll. */
  readonly waiting: "notify" | "poll";
  /** Whether the engine has {@link Driver.requeue}. Without it grants are not handed over in memory. */
  readonly requeue: boolean;
  /** Whether a grant may have more than one fencing token. Without it grants are not handed over in memory. */
  readonly fencingBlocks: boolean;
  /** The largest TTL, ms. */
  readonly maxTtlMs: number;
  /** The longest validity of a claim, ms: a grant that was received after a wait, until its first extension. */
  readonly claimMs: number;
}

/** The metadata of a holder, as shown by `inspect`. Without an owner the owner of the `Locks` is shown. */
export interface HolderInfo {
  readonly owner?: string | undefined;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** The report that a holder sends with an extension. */
export interface HolderReport extends HolderInfo {
  /** The fencing token in use, because a hand-over in memory changes it without the engine. */
  readonly fencingToken: bigint;
  /** The lease will never be handed over in memory, so no later fencing token of its grant is used. */
  readonly isLast?: boolean | undefined;
  /** How many callers wait in the memory of the holder's process; undefined or 0: none. */
  readonly localWaiters?: number | undefined;
  /** How long the oldest of them has waited, ms; undefined: none. */
  readonly localWaitMs?: number | undefined;
}

/** One page of `LocksAdmin.list`. */
export interface ListQuery {
  readonly prefix: string;
  /** The cursor from the page before; null: the first page. */
  readonly cursor: string | null;
  readonly limit: number;
  readonly signal?: AbortSignal | undefined;
}

/** One request for a lock, which waits until its deadline. */
export interface AcquireRequest {
  readonly key: string;
  /** The engine rejects a key of another kind with `kind-mismatch`, and another limit with `limit-mismatch`. */
  readonly lockMode: LockMode | undefined;
  readonly ttlMs: number;
  /** The end of the wait, on the scale of `clock.now()`. `Infinity` means no end, and null means a try without a wait. */
  readonly deadline: number | null;
  /** The ticket from {@link Driver.ticket}; undefined: the request gets one on its arrival. */
  readonly ticket: number | undefined;
  /** How many fencing tokens to request for the grant, at least 1. All repeats of the request have the same count. */
  readonly fencingCount: number;
  readonly info: HolderInfo | undefined;
  /**
   * Called when the deadline has passed and the request has left the queue. The result may come later, because the driver looks up the
   * holder first.
   */
  readonly waiter?:
    | {
        onDequeued(): void;
        /** Called when the request waits at the engine, any number of times. @param position in the queue, from 0, if known */
        onQueued?(position: number | undefined): void;
      }
    | undefined;
}

/** A grant of the engine. `token` is the secret of later calls. */
export interface Grant {
  readonly key: string;
  readonly token: string;
  readonly fencingToken: bigint;
  /** How many consecutive fencing tokens, from `fencingToken`, belong to this grant. */
  readonly fencingCount: number;
  validity: Validity;
  /** The grant came after a wait, and is valid for `claimMs` only. The holder extends it at once. */
  readonly isClaim: boolean;
  /** How the grant arrived, for diagnostics. @defaultValue "reply" */
  readonly via?: "reply" | "message" | undefined;
}

/** The result of a request. `held`: another holder has the lock, and the deadline has passed. */
export type AcquireResult =
  | { readonly outcome: "granted"; readonly grant: Grant }
  | {
      readonly outcome: "held";
      readonly holder?: Holder | undefined;
      readonly position?: number | undefined;
    };

/** A request that is under way. */
export interface PendingAcquire {
  /**
   * Resolves with a grant, or with `held` if the lock is held at the deadline. A try resolves with the first reply.
   * Rejects with an `EngineError` if the engine fails until the deadline, or until the end of a try's command budget.
   * A permanent failure rejects at once. A quorum rejects with a `QuorumError` instead of an `EngineError`.
   */
  readonly result: Promise<AcquireResult>;
  /** Leaves the queue and rejects with `reason`. A grant that races the call is released. No effect on a settled request. */
  cancel(reason: unknown): void;
}

/** A requeue that is under way. */
export interface PendingRequeue extends PendingAcquire {
  /** Whether the previous grant held the lock until its release. */
  readonly released: Promise<boolean>;
}

/** A caller's reference to a latch. The first call creates the latch with its count and TTL. */
export interface LatchRef {
  readonly key: string;
  /** The count of the latch. Another count is rejected with `limit-mismatch`. */
  readonly count: number;
  readonly ttlMs: number;
  /**
   * The identity of the latch among the latches of its key. The driver writes it with its first reply. Afterwards, calls with this
   * reference to a later latch of the key reject with `latch-expired`.
   */
  generation: string | undefined;
}

/** A wait for a latch. */
export interface PendingLatchWait {
  /**
   * Resolves with 0 when the latch opens, or with the remaining count at the deadline. Without a deadline the first reply counts.
   * Rejects like {@link PendingAcquire.result}, and with `latch-expired`.
   */
  readonly result: Promise<number>;
  /** Rejects with `reason`. No effect on a settled wait. */
  cancel(reason: unknown): void;
}

/** The latches of an engine. */
export interface LatchEngine {
  /**
   * Counts down once for each attempt, also if requests are repeated, and never below 0. Resolves with the remaining count.
   * Rejects with an `EngineError` at the end of its command budget.
   * @param attemptId the caller's idempotency key; undefined: the call is an attempt of its own
   */
  countDown(latch: LatchRef, attemptId: string | undefined): Promise<number>;
  /** @param deadline end of the wait, on the scale of `clock.now()`. `Infinity` means no end, and null reads the count once. */
  wait(latch: LatchRef, deadline: number | null): PendingLatchWait;
}

/** A request to extend a grant. */
export interface ExtendRequest {
  readonly key: string;
  readonly token: string;
  /** The fencing token of the lease. A later grant of the same token has a larger one and is not extended: the result is `lost`. */
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** Replaces the last report of the holder at the engine; undefined: the last report stays. */
  readonly info: HolderReport | undefined;
}

/** The result of an extension. After `unknown` the lease keeps its present validity. */
export type ExtendResult =
  | { readonly outcome: "extended"; readonly validity: Validity }
  | { readonly outcome: "lost"; readonly reason: LossReason }
  | { readonly outcome: "unknown"; readonly error: unknown };

/** Whether a token holds its lock at the engine. */
export type VerifyResult =
  | {
      readonly outcome: "valid";
      readonly validity: Validity;
      /**
       * How long the grant remains in force is not known, so `validity` has ended, and an extension states it: another program removed
       * the TTL, or another driver gave the grant and the engine does not know its age.
       */
      readonly hasUnknownEnd?: boolean | undefined;
    }
  | { readonly outcome: "lost"; readonly reason: LossReason };

/** The events that a driver reports. */
export interface DriverListener {
  /** The engine has ended a grant of this driver. @param token null: all grants of this driver are lost */
  lost(token: string | null, reason: LossReason, cause?: unknown): void;
  /** Notifications may have been missed, so every lease has to be verified. */
  notificationsInterrupted(): void;
  /** The engine replies again, so failed renewals are repeated at once. */
  engineRecovered(): void;
}

/**
 * The contract of an engine. A driver may batch calls of one turn of the event loop.
 * No method but `checkKey` throws synchronously. Every returned promise settles in bounded time, except a wait without deadline.
 */
export interface Driver {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;

  /** Sets the owner that the engine shows for holders and waiters. `createLocks` calls it first. */
  setOwner(owner: string): void;
  /** Checks that the engine can hold the key. @throws {LockError} `invalid-key` */
  checkKey(key: string): void;
  /** The ticket of a caller that arrives now; undefined: not known yet, so the request gets one on its arrival. */
  ticket(key: string): number | undefined;

  acquire(request: AcquireRequest): PendingAcquire;
  /** Releases a grant and queues a new request in one step, so that other processes get their turn. Needs `capabilities.requeue`. */
  requeue(previous: Grant, request: AcquireRequest): PendingRequeue;
  /** Extends a grant, which may belong to another process. */
  extend(request: ExtendRequest): Promise<ExtendResult>;
  /**
   * Checks whether a token holds the lock, without extending the grant. Rejects with an `EngineError` if the engine cannot decide.
   * @param fencingToken the fencing token of a grant without a watchdog. A delayed request may have acquired the lock again with the
   * same token, and that grant has a larger fencing token.
   */
  verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult>;
  /**
   * Releases a grant. Rejects with an `EngineError` if the engine does not reply within the command budget. The release then continues
   * in the background until `until`, the end of the validity, or until `close()`. The engine may keep the grant slightly longer.
   * @returns whether the grant held the lock until now
   */
  release(key: string, token: string, until: number): Promise<boolean>;
  /**
   * Turns a writer's grant into a reader's. The request is repeated in the background until the engine replies or `until` has passed.
   * @returns whether the grant held the lock until now
   */
  downgrade(key: string, token: string, until: number): Promise<boolean>;
  /** Changes the limit of a semaphore. Present grants keep their permits. */
  setLimit(key: string, limit: number): Promise<void>;
  /** Absent if `capabilities.kinds` has no latch. */
  readonly latches?: LatchEngine;
  /** Adds a listener. @returns a function that removes the listener */
  listen(listener: DriverListener): () => void;

  /** The present state of one key. */
  inspect(key: string): Promise<LockState>;
  /**
   * Lists one page in bounded time. A page may be empty, and only the cursor null is the end. Rejects with the reason of an aborted
   * signal.
   */
  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }>;
  /** Yields a snapshot, then coalesced changes, until the signal aborts. */
  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent>;
  /**
   * Ends the grant with this fencing token by force. If the grant held the key and the driver has {@link Driver.audit}, the engine
   * writes a record in the same step. A repeat breaks nothing, and writes no second record.
   */
  breakGrant(key: string, fencingToken: bigint, reason: string, note?: BreakNote): Promise<BreakOutcome>;
  /** Reads the records of breaks. Absent: the engine keeps none. */
  readonly audit?: ((query: AuditQuery) => Promise<AuditPage>) | undefined;
  /**
   * Whether the lease with this fencing token holds the key now. `unknown`: the fencing token belongs to the present grant, and the
   * engine does not know whether the grant was handed over. Never `current` for a lease that does not hold the key.
   * Rejects with an `EngineError` if the engine cannot decide.
   */
  checkFence(key: string, fencingToken: bigint): Promise<FenceState>;
  /** Absent if a process of this engine cannot ask other processes. */
  readonly processes?: ProcessDirectory;
  /** The state of each server. */
  nodes(): Promise<NodeState[]>;
  /** Closes the connections that the driver opened. Pending requests reject with `closed`. */
  close(): Promise<void>;
}
