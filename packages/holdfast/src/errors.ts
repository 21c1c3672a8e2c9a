import type { Holder } from "./lock-state.ts";
import { messageOf } from "./runtime/error-message.ts";
import { fencingTokenAsText, withJson } from "./runtime/plain-values.ts";

/**
 * The kind of a failure, the same in the library, over HTTP and on the command line.
 * `wait-timeout`: `waitMs` has passed. `lease-lost`: the lease has ended. `quorum-not-reached`: too few nodes of a quorum agreed.
 * `engine-unavailable`: the engine is unreachable or failed. `replicas-not-reached`: too few replicas acknowledged the grant.
 * `self-deadlock`: the call would wait for its own caller. `kind-mismatch`: the key is another kind of lock.
 * `limit-mismatch`: the semaphore has another limit, or the latch another count. `too-many-waiters`: `maxWaiters` callers already wait.
 * `latch-expired`: the TTL of the latch has passed. `unsupported`: the engine or the lease cannot do this. `invalid-key`: the engine
 * cannot hold the key, for example because it is too long. `closed`: after `close()`.
 */
export type LockErrorCode =
  | "wait-timeout"
  | "lease-lost"
  | "quorum-not-reached"
  | "engine-unavailable"
  | "replicas-not-reached"
  | "self-deadlock"
  | "kind-mismatch"
  | "limit-mismatch"
  | "too-many-waiters"
  | "latch-expired"
  | "unsupported"
  | "invalid-key"
  | "closed";

/**
 * Why a lease was lost. `expired`: the validity ended. `stolen`: another holder has the lock, or a
 * release found that the engine had ended the grant. `broken`: an operator ended the grant.
 * `max-hold`: `maxHoldMs` has passed. `engine-unreachable`: renewals failed until the deadline. `suspended`: the machine slept.
 * `released`: the lease was used after its release, or `close()` released the lease.
 */
export type LossReason =
  "expired" | "stolen" | "broken" | "max-hold" | "engine-unreachable" | "suspended" | "released";

/** Whether a failed request had an effect: `none`, or `unknown` if no reply arrived. */
export type Outcome = "none" | "unknown";

const brand = Symbol.for("holdfast.LockError");

interface LockErrorDetails<Code extends LockErrorCode> {
  readonly code: Code;
  readonly key?: string | undefined;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/**
 * Base class of all errors of Holdfast but those for invalid options. Recognise it with {@link isLockError}.
 * @typeParam Code - the possible codes
 */
export class LockError<Code extends LockErrorCode = LockErrorCode> extends Error {
  override readonly name: string = "LockError";
  readonly code: Code;
  readonly key: string | undefined;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(message: string, details: LockErrorDetails<Code>) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.key = details.key;
    this.retryable = details.retryable ?? false;
    Object.defineProperty(this, brand, { value: true });
  }

  /**
   * Safe to log: fencing tokens are decimal strings, and secrets are absent. The JSON may name the holder: its host, process, `reason` and
   * `labels`. So a reply to a stranger has `code` and `retryable` only.
   */
  toJSON(): Record<string, unknown> {
    const { name, code, message, key, retryable } = this;
    return { name, code, message, key, retryable };
  }
}

/** `waitMs` has passed, and the lock is still held or the latch is not open. Code `wait-timeout`; retryable. */
export class WaitTimeoutError extends LockError<"wait-timeout"> {
  override readonly name = "WaitTimeoutError";
  /** The holder in the last reply of the engine, if known. */
  readonly holder: Holder | undefined;
  /** The last known queue position, from 0. A caller in the local queue knows a lower bound, because only local waiters are counted. */
  readonly position: number | undefined;

  /** @param remaining the remaining count of a latch; undefined for a lock */
  constructor(key: string, waitMs: number, holder?: Holder, position?: number, remaining?: number) {
    const by = holder === undefined ? "" : ` by ${holder.owner}`;
    const what =
      remaining === undefined
        ? `The lock "${key}" is still held${by}`
        : `The latch "${key}" still needs ${remaining} countdown${remaining === 1 ? "" : "s"}`;
    super(`${what} after ${waitMs} ms`, { code: "wait-timeout", key, retryable: true });
    this.holder = holder && withJson(holder);
    this.position = position;
  }

  override toJSON(): Record<string, unknown> {
    const { holder, position } = this;
    return { ...super.toJSON(), holder: holder && fencingTokenAsText(holder), position };
  }
}

/** The engine cannot hold the key. A key may come from a user, so its error has a code, unlike those of other arguments. */
export function invalidKey(message: string, key?: string): LockError {
  return new LockError(message, { code: "invalid-key", key });
}

/** The key exists as another kind of lock. */
export function kindMismatch(key: string, present: string, cause?: unknown): LockError {
  return new LockError(`The key "${key}" is another kind of lock: ${present}; use another key`, {
    code: "kind-mismatch",
    key,
    cause,
  });
}

/** The semaphore has another limit. */
export function limitMismatch(key: string, present: number): LockError {
  const message = `The semaphore "${key}" has the limit ${present}, which all callers must name until setLimit() changes it`;
  return new LockError(message, { code: "limit-mismatch", key });
}

/** The latch was created with another count. */
export function countMismatch(key: string, present: number): LockError {
  const message = `The latch "${key}" was created with the count ${present}; use the same count`;
  return new LockError(message, { code: "limit-mismatch", key });
}

/** The latch that the caller used has expired. The key may have a new latch. */
export function latchExpired(key: string): LockError {
  return new LockError(`The latch "${key}" has expired`, { code: "latch-expired", key });
}

/** The lease ended without a release, or was used after its release (reason `released`). Code `lease-lost`. */
export class LeaseLostError extends LockError<"lease-lost"> {
  override readonly name = "LeaseLostError";
  readonly reason: LossReason;
  /** When the loss was detected: milliseconds since 1970, by the wall clock of this process. */
  readonly lostAt: number;
  /**
   * From `withLock`, `tryWithLock` and `once`: whether the callback ran to its end. If false, the callback rejected because the loss
   * aborted it, and some of its effects may exist. False from all other calls.
   */
  readonly workEnded: boolean;
  /** The value of the callback, if {@link LeaseLostError.workEnded}. */
  readonly result: unknown;

  constructor(
    key: string,
    reason: LossReason,
    lostAt: number,
    more: { cause?: unknown; result?: unknown } = {},
  ) {
    const why = more.cause instanceof Error ? ` (${messageOf(more.cause)})` : "";
    super(`The lease of "${key}" is lost: ${reason}${why}`, { code: "lease-lost", key, cause: more.cause });
    this.reason = reason;
    this.lostAt = lostAt;
    this.workEnded = "result" in more;
    this.result = more.result;
  }

  override toJSON(): Record<string, unknown> {
    const { reason, lostAt, workEnded } = this;
    return { ...super.toJSON(), reason, lostAt, workEnded };
  }
}

/**
 * The engine is unreachable or returned an error. With the code `replicas-not-reached` fewer replicas than required have acknowledged,
 * and the grant was rolled back. The error never means that the lock is free.
 */
export class EngineError extends LockError<"engine-unavailable" | "replicas-not-reached"> {
  override readonly name = "EngineError";
  readonly outcome: Outcome;
  /** After this time a retry may succeed, ms; undefined: not known. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    details: {
      key?: string | undefined;
      outcome: Outcome;
      retryable: boolean;
      retryAfterMs?: number;
      cause?: unknown;
      /** @defaultValue "engine-unavailable" */
      code?: "engine-unavailable" | "replicas-not-reached";
    },
  ) {
    super(message, { ...details, code: details.code ?? "engine-unavailable" });
    this.outcome = details.outcome;
    this.retryAfterMs = details.retryAfterMs;
  }

  override toJSON(): Record<string, unknown> {
    const { outcome, retryAfterMs } = this;
    return { ...super.toJSON(), outcome, retryAfterMs };
  }
}

/** The reply of one node of a quorum, or why the reply does not count. */
export interface NodeVote {
  readonly node: string;
  /**
   * `granted`: the node agreed to the request. `held`: another token has the grant. `timeout`, `error`: no reply, or an
   * error. `quarantined`: the node may have lost data, its clock is off, or it is a replica.
   */
  readonly vote: "granted" | "held" | "timeout" | "error" | "quarantined";
  /** From the request to the reply, ms; null: no reply. */
  readonly latencyMs: number | null;
  readonly reason: string | null;
}

/**
 * Too few nodes granted, and not because another token holds the lock. Code `quorum-not-reached`.
 * The error never means that the lock is free.
 */
export class QuorumError extends LockError<"quorum-not-reached"> {
  override readonly name = "QuorumError";
  /** The vote of each node, in the order of the configuration. */
  readonly votes: readonly NodeVote[];
  readonly outcome: Outcome;
  /** The time after which enough nodes may vote again, ms; undefined: not known. */
  readonly retryAfterMs: number | undefined;

  constructor(details: {
    key?: string | undefined;
    votes: readonly NodeVote[];
    outcome: Outcome;
    retryable: boolean;
    retryAfterMs?: number | undefined;
    cause?: unknown;
  }) {
    const { key, votes } = details;
    const needed = Math.floor(votes.length / 2) + 1;
    const agreed = votes.filter(({ vote }) => vote === "granted").length;
    const replies = votes
      .map(({ node, vote, reason }) => `${node} ${vote}${reason === null ? "" : ` (${reason})`}`)
      .join(", ");
    const keyText = key === undefined ? "" : ` for "${key}"`;
    const counts = `${agreed} of ${votes.length} nodes agreed, ${needed} needed`;
    super(`Quorum not reached${keyText}: ${counts} (${replies})`, {
      ...details,
      code: "quorum-not-reached",
    });
    this.votes = votes;
    this.outcome = details.outcome;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** A copy of this error for one key. */
  forKey(key: string | undefined): QuorumError {
    const { votes, outcome, retryable, retryAfterMs, cause } = this;
    return new QuorumError({ key, votes, outcome, retryable, retryAfterMs, cause });
  }

  override toJSON(): Record<string, unknown> {
    const { votes, outcome, retryAfterMs } = this;
    return { ...super.toJSON(), votes, outcome, retryAfterMs };
  }
}

/** The class of the errors with a code. */
export type LockErrorOf<Code extends LockErrorCode> = Code extends "wait-timeout"
  ? WaitTimeoutError
  : Code extends "lease-lost"
    ? LeaseLostError
    : Code extends "quorum-not-reached"
      ? QuorumError
      : Code extends "engine-unavailable" | "replicas-not-reached"
        ? EngineError
        : LockError<Code>;

/**
 * Every error of Holdfast but those for invalid options, as a union discriminated by `code`.
 * @example
 * ```ts
 * function explain(error: unknown): string {
 *   if (!isLockError(error)) throw error;
 *   switch (error.code) {
 *     case "wait-timeout":
 *       return `busy: ${error.holder?.owner ?? "another process"}`;
 *     case "lease-lost":
 *       return error.workEnded ? "done, but the lock was lost" : `lost: ${error.reason}`;
 *     default:
 *       return error.retryable ? "try again later" : error.message;
 *   }
 * }
 * ```
 */
export type AnyLockError = { [Code in LockErrorCode]: LockErrorOf<Code> }[LockErrorCode];

/** Whether `error` is an error of this or another copy of the package. */
export function isLockError(error: unknown): error is AnyLockError;
/**
 * Whether `error` has this code, and so the members of its class.
 * @param code if undefined, each {@link LockError} counts
 */
export function isLockError<Code extends LockErrorCode>(
  error: unknown,
  code: Code | undefined,
): error is LockErrorOf<Code>;
export function isLockError(error: unknown, code?: LockErrorCode): boolean {
  return (
    typeof error === "object" &&
    error !== null &&
    (error as Record<symbol, unknown>)[brand] === true &&
    (code === undefined || (error as LockError).code === code)
  );
}

/** A lease does not support an operation in its present state. */
export function unsupportedLease(key: string, fact: string, toBe: string): LockError {
  return new LockError(`The lease of "${key}" ${fact}; it cannot be ${toBe}`, { code: "unsupported", key });
}

export function closedError(key?: string): LockError {
  const keyText = key === undefined ? "" : ` for "${key}"`;
  return new LockError(`This Locks instance is closed${keyText}; create another one`, {
    code: "closed",
    key,
  });
}
