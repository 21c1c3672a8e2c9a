import type { Capabilities, ListQuery, LockMode } from "../../driver.ts";
import type { PollLimits } from "./poll-delay.ts";
import type { LossReason, Outcome } from "../../errors.ts";
import type { Holder, LockState, NodeState } from "../../lock-state.ts";
import type { AuditRecord, BreakNote } from "../../operator/audit.ts";

// How an engine is added:
// 1. Implement `LeaseStore` in `drivers/<engine>/`, with one request to the engine for each method. Create a `StoreDriver` with it.
//    The driver adds what all such engines need: waits, repeats, time limits, clean-up, reports of losses, watches, close.
// 2. Run the exported conformance suite on the real engine, with two drivers, in `test/drivers/<engine>/`.
// 3. Add the entry point: `exports` of package.json, `test/support/public-names.ts`, an api report, the `entryPoints` of
//    `test/loaded-files.test.ts`. Client libraries are optional peers, and never imported statically.
// 4. Add one line to the `engines` of `connect/engines.ts`, and one to the `engines` of the lock service in `doctor/engines.ts`.
// 5. Write docs/drivers/<engine>.md and a line of the changelog.

/** One request for a lock. All repeats of a request have the same token, so that a repeat after a lost reply finds its own grant. */
export interface StoreAttempt {
  readonly key: string;
  readonly token: string;
  readonly lockMode: LockMode | undefined;
  readonly ttlMs: number;
  /** How long the request may stay in the queue, ms, or Infinity; null: the request does not wait, and gets no queue entry. */
  readonly waitMs: number | null;
  /** The ticket from an earlier reply. An entry that has expired gets its old place again. undefined: the request gets a new ticket. */
  readonly ticket: string | undefined;
  /** The queue entry expires this long after the last repeat, ms. A dead waiter leaves the queue then. */
  readonly entryTtlMs: number;
  readonly owner: string;
  readonly reason: string | undefined;
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/**
 * The reply to one request. `held`: the request did not wait, or its wait has ended, and it has no queue entry. `queued`: the request
 * has a queue entry until its next repeat.
 */
export type StoreReply =
  | {
      readonly outcome: "granted";
      readonly fencingToken: bigint;
      /** The TTL in force, ms, counted from the sending of the request; absent: the requested TTL. */
      readonly ttlMs?: number;
    }
  | { readonly outcome: "held"; readonly holder: Holder | undefined; readonly position: number }
  | {
      readonly outcome: "queued";
      readonly ticket: string;
      /** The rank in the queue, from 0. */
      readonly position: number;
      /** Until the first grant expires, ms; Infinity: not known. */
      readonly remainingMs: number;
    };

/** A request to extend a grant. */
export interface StoreExtension {
  readonly key: string;
  readonly token: string;
  /** A grant with a larger fencing token is another one, and not extended. */
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** Replaces the holder's metadata; undefined: unchanged. */
  readonly info: Pick<StoreAttempt, "owner" | "reason" | "labels"> | undefined;
}

/** A grant that a break has ended. */
export interface BrokenGrant {
  readonly token: string;
  /** The id of the record; absent: none was written. */
  readonly auditId?: string | undefined;
}

/** Receives what the engine reports without a request. */
export interface StoreListener {
  /** The waiter with this ticket may be granted the lock now. */
  wake(ticket: string): void;
  /** The engine ended the grant of this token. @param token null: all grants of this store are lost */
  lost(token: string | null, reason: LossReason, cause?: unknown): void;
  /** Notifications may have been missed. */
  interrupted(): void;
}

/** Why a request failed, and whether its repeat may succeed. */
export interface StoreFailure {
  readonly message: string;
  readonly outcome: Outcome;
  readonly retryable: boolean;
}

/**
 * One engine as a table of leases. Each method is one request, which takes effect once or not at all. The engine decides by its own
 * clock. Methods may reject with a `LockError`, which reaches the caller, or with an error of the client, see `failureOf`.
 * A method need not limit its time, and its promise settles when the request can no longer be sent.
 */
export interface LeaseStore {
  readonly capabilities: Capabilities;
  /** Whether notifications arrive now. Otherwise waiters poll at short intervals. */
  readonly isNotified: boolean;
  /** How often waiters poll, if a request is expensive. Absent: as often as an engine in the same network allows. */
  readonly pollLimits?: PollLimits | undefined;
  /** @throws {RangeError} */
  checkKey(key: string): void;
  /**
   * Grants the lock if it is free and no earlier waiter is in the queue. A request whose token has a grant extends that grant to at
   * least the TTL, and gets the same fencing token.
   * @param isSettled whether the caller has its result. A late request of that caller must be neither granted nor queued. A store
   * that decides a request more than once asks before each decision.
   */
  acquire(attempt: StoreAttempt, isSettled: () => boolean): Promise<StoreReply>;
  /** @returns the TTL in force, ms, counted from the sending of the request, or why the grant is lost */
  extend(extension: StoreExtension): Promise<number | LossReason>;
  /**
   * Only reads. @param fencingToken if given, a grant with a larger one is another grant
   * @returns the remaining TTL, ms, or why the grant is lost. -1: it is not known, because another program removed the TTL, or because
   * another driver has written the grant, and the engine does not know its age
   */
  verify(key: string, token: string, fencingToken: bigint | undefined): Promise<number | LossReason>;
  /** Removes the token's grant and queue entry. @returns whether the grant was in force */
  release(key: string, token: string): Promise<boolean>;
  /** Turns a writer's grant into a reader's. @returns whether the grant was in force */
  downgrade(key: string, token: string): Promise<boolean>;
  setLimit(key: string, limit: number): Promise<void>;
  inspect(key: string): Promise<LockState>;
  /** Whether a text may be a cursor of `list`. Absent: a cursor is `>` and the last key of the page before. */
  isCursor?(text: string): boolean;
  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }>;
  /**
   * Ends the grant with this number. If the engine keeps an audit, it writes a record in the same transaction.
   * @param note undefined: no record is written
   * @returns null: no grant in force has this number, and no record was written
   */
  breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note: BreakNote | undefined,
  ): Promise<BrokenGrant | null>;
  /** Reads the records of breaks, oldest first. Absent: the engine keeps none. */
  audit?(): Promise<AuditRecord[]>;
  /** Whether the lease with this number holds the key now. */
  isCurrent(key: string, fencingToken: bigint): Promise<boolean>;
  nodes(): Promise<NodeState[]>;
  failureOf(error: unknown): StoreFailure;
  /** Why the last attempt to connect failed; undefined while a connection is open. Absent: requests fail with that error themselves. */
  connectionFailure?(): Error | undefined;
  /** Starts to receive notifications. Absent: the engine has none. @returns a function that ends them */
  subscribe?(listener: StoreListener): () => void;
  /** Closes the connections that the store opened. */
  close(): Promise<void>;
}
