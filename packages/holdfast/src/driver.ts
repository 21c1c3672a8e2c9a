import type { Clock } from "./runtime/clock.ts";
import type { LossReason } from "./errors.ts";
import type { Random } from "./runtime/random.ts";
import type { FenceState, Holder, LockEvent, LockKind, LockState, NodeState } from "./lock-state.ts";
import type { Validity } from "./validity.ts";

/** How a request shares its key with others; none: as a mutex it wants the key for itself. */
export type LockMode =
  | { readonly kind: "read-write"; readonly mode: "read" | "write" }
  | {
      readonly kind: "semaphore";
      readonly permits: number;
      readonly limit: number;
      /** It waited behind leases of its process, which the engine granted for this limit: it takes the limit that there is at its turn. */
      readonly hasWaited?: boolean;
    };

/** What an engine can do; the core never probes. */
export interface Capabilities {
  readonly kinds: readonly LockKind[];
  /** How far exclusion reaches. */
  readonly guarantee: "process" | "server" | "quorum" | "consensus" | "database";
  /** How waiters learn of their turn. */
  readonly waiting: "notify" | "poll";
  /** Whether a grant can be given up and queued for again in one step. Without it there is no hand-over in memory. */
  readonly requeue: boolean;
  /** Whether a grant may carry more than one fencing number. Without it there is no hand-over in memory. */
  readonly fencingBlocks: boolean;
  readonly maxTtlMs: number;
  /** A grant received after a wait is valid for at most this long until its first extension. */
  readonly claimMs: number;
}

/** What an owner says of itself beside its instance's own description; told by `inspect`. */
export interface HolderInfo {
  readonly owner?: string | undefined;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** What a holder reports with an extension. */
export interface HolderReport extends HolderInfo {
  /** The number in use: inside the holder's process numbers change hands without the engine. */
  readonly fencingToken: bigint;
  /** Callers that wait in memory in the holder's process; undefined or 0: none. */
  readonly localWaiters?: number | undefined;
}

export interface ListQuery {
  readonly prefix: string;
  /** null: from the start. */
  readonly cursor: string | null;
  readonly limit: number;
  readonly signal?: AbortSignal | undefined;
}

export interface AcquireRequest {
  readonly key: string;
  /** A key of another kind, or with another limit, is refused: `kind-mismatch`, `limit-mismatch`. */
  readonly lockMode: LockMode | undefined;
  readonly ttlMs: number;
  /** When to stop waiting, on the scale of `clock.now()`; `Infinity`: never; null: only try. */
  readonly deadline: number | null;
  /** Our place in the queue, from {@link Driver.ticket}; undefined: that of now. */
  readonly ticket: number | undefined;
  /** How many fencing numbers the grant would like to carry, at least 1; the same in all repeats. */
  readonly fencingCount: number;
  readonly info: HolderInfo | undefined;
  /** Told where its time is over and it has left the queue, before the answer: that may take longer, to say who holds the lock. */
  readonly waiter?: { onDequeued(): void } | undefined;
}

/** The engine's yes. `token` is the secret that later calls need. */
export interface Grant {
  readonly key: string;
  readonly token: string;
  readonly fencingToken: bigint;
  /** How many numbers from `fencingToken` on are this grant's. */
  readonly fencingCount: number;
  readonly validity: Validity;
  /** Granted for less than was asked, as it came after a wait: to be extended at once. */
  readonly isClaim: boolean;
}

export type AcquireResult =
  | { readonly outcome: "granted"; readonly grant: Grant }
  | {
      readonly outcome: "held";
      readonly holder?: Holder | undefined;
      readonly position?: number | undefined;
    };

/** Of several keys: a grant for each, or one that is not free. */
export type MultiAcquired =
  | { readonly outcome: "granted"; readonly grants: readonly Grant[] }
  | { readonly outcome: "held"; readonly key: string };

/** A request under way. */
export interface PendingAcquire {
  /**
   * Wherever an `EngineError` is told of, a quorum rejects with a `QuorumError`.
   *
   * Settles with a grant; with `held` when the deadline has passed or the try failed; rejects with an `EngineError` at the
   * deadline (of a try: at the end of its command budget) where the engine failed, at once where that cannot pass by itself.
   */
  readonly result: Promise<AcquireResult>;
  /** Leaves the queue and rejects with `reason`. A grant that races it is released. No effect once settled. */
  cancel(reason: unknown): void;
}

export interface PendingRequeue extends PendingAcquire {
  /** Whether the grant given up was still ours. */
  readonly released: Promise<boolean>;
}

/** One caller's view of a latch. The first who touches a latch makes it, with its own TTL. */
export interface LatchRef {
  readonly key: string;
  /** Another one than the latch began with is refused: `limit-mismatch`. */
  readonly count: number;
  readonly ttlMs: number;
  /**
   * Which latch of this key it is, in the engine's words. The engine writes it with its first answer; from then on no other latch is
   * touched by this view, but refused: `latch-expired`.
   */
  generation: string | undefined;
}

/** Somebody waits for a latch. */
export interface PendingLatchWait {
  /**
   * Settles with what is left of the count: 0 as soon as the latch is open; more when the deadline has passed, or the one look has
   * been taken. Rejects as {@link PendingAcquire.result} does, and with `latch-expired`.
   */
  readonly result: Promise<number>;
  /** Rejects with `reason`. No effect once settled. */
  cancel(reason: unknown): void;
}

/** The latches of an engine. */
export interface LatchEngine {
  /**
   * Counts once for each attempt, whatever is sent again; not below 0. Settles with what is left. Rejects with an `EngineError` at the
   * end of its command budget.
   * @param attemptId the caller's idempotency key; undefined: this call is an attempt by itself
   */
  countDown(latch: LatchRef, attemptId: string | undefined): Promise<number>;
  /** @param deadline when to stop waiting, on the scale of `clock.now()`; `Infinity`: never; null: look once */
  wait(latch: LatchRef, deadline: number | null): PendingLatchWait;
}

export interface ExtendRequest {
  readonly key: string;
  readonly token: string;
  /** The lease's number. A later grant of the same token, which has a greater one, is not prolonged: the answer is lost. */
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** What the engine is to keep beside the key from now on, instead of the last report; undefined: the last report stays. */
  readonly info: HolderReport | undefined;
}

/** `unknown` is neither held past its validity nor lost before it. */
export type ExtendResult =
  | { readonly outcome: "renewed"; readonly validity: Validity }
  | { readonly outcome: "lost"; readonly reason: LossReason }
  | { readonly outcome: "unknown"; readonly error: unknown };

export type VerifyResult =
  | { readonly outcome: "held"; readonly validity: Validity }
  | { readonly outcome: "lost"; readonly reason: LossReason };

/** What an engine tells without being asked. */
export interface DriverListener {
  /** A grant of this driver was ended by force. @param token null: all grants of this process are lost */
  lost(token: string | null, reason: LossReason, cause?: unknown): void;
  /** The engine could not reach us for a while: what is held has to be verified. */
  notificationsInterrupted(): void;
  /** The engine answers again after it did not: renewals that failed are tried again at once. */
  engineRecovered(): void;
}

/**
 * One engine, in terms of locks. Calls of one turn of the event loop may travel together.
 * No call throws synchronously; every promise it returns settles in bounded time, except the wait of a request without deadline.
 */
export interface Driver {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;

  /** Makes the engine know who we are; called by `createLocks` before anything else. */
  setOwner(owner: string): void;
  /** Refuses a key that this engine cannot hold. @throws {RangeError} */
  checkKey(key: string): void;
  /** The place in the queue of a caller that wants this key and arrives now; undefined: not known yet, the request gets its own. */
  ticket(key: string): number | undefined;

  acquire(request: AcquireRequest): PendingAcquire;
  /** Whether {@link acquireMany} can take these keys. Absent: it can take any. */
  canAcquireMany?(keys: readonly string[]): boolean;
  /**
   * Takes several free locks in one step, or none of them. Absent where the engine cannot: then each is asked for by itself.
   * Rejects with an `EngineError` at the end of its command budget.
   */
  acquireMany?(requests: readonly AcquireRequest[]): Promise<MultiAcquired>;
  /** Gives up a grant and queues a new request in one step, so that other processes get their turn. Needs `requeue`. */
  requeue(previous: Grant, request: AcquireRequest): PendingRequeue;
  /** Prolongs a grant, also one of another process. */
  extend(request: ExtendRequest): Promise<ExtendResult>;
  /**
   * Asks whether a token still holds, without extending. Rejects with an `EngineError` where the engine cannot say.
   * @param fencingToken of a grant that nobody has watched meanwhile: a late request may have got the lock again with the same token,
   * and a greater number, after it was lost
   */
  verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult>;
  /**
   * @returns whether it was still ours
   * Rejects with an `EngineError` after its budget where the engine cannot be reached, and goes on in the background until
   * `until` has passed: then it has expired.
   */
  release(key: string, token: string, until: number): Promise<boolean>;
  /**
   * A writer is a reader from now on. Settles when the engine knows; until then it goes on in the background.
   * @returns whether it was still ours
   */
  downgrade(key: string, token: string, until: number): Promise<boolean>;
  /** The limit of a semaphore from now on; who holds keeps what he has. */
  setLimit(key: string, limit: number): Promise<void>;
  /** Absent where the engine has none; then its kinds have none either. */
  readonly latches?: LatchEngine;
  /** Adds a listener; returns its removal. */
  listen(listener: DriverListener): () => void;

  inspect(key: string): Promise<LockState>;
  /** Takes a bounded time: a page may be empty, and only the cursor null is the end. Rejects with the reason of an aborted signal. */
  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }>;
  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent>;
  breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean>;
  /**
   * Whether the lease with this number holds the key now. `unknown`: the number belongs to the block of the present grant, and the
   * engine does not know whether its process has handed the lease on. Never `current` for a lease that does not hold the key.
   * Rejects with an `EngineError` where the engine cannot say.
   */
  checkFence(key: string, fencingToken: bigint): Promise<FenceState>;
  nodes(): Promise<NodeState[]>;
  /** Ends what the driver opened itself. Pending requests reject `closed`. */
  close(): Promise<void>;
}
