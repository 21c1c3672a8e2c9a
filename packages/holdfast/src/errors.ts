import type { Holder } from "./lock-state.ts";

/** What went wrong, the same in the library, over HTTP and on the command line. */
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
  | "closed";

/** Why a lease is not ours any more. */
export type LossReason =
  "expired" | "stolen" | "broken" | "max-hold" | "engine-unreachable" | "suspended" | "released";

/** What a failed request may have left behind: `none`, or `unknown` where no answer came. */
export type Outcome = "none" | "unknown";

const brand = Symbol.for("holdfast.LockError");

interface LockErrorDetails {
  readonly code: LockErrorCode;
  readonly key?: string | undefined;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/** Any refusal of Holdfast that is not a programming mistake. Use {@link isLockError} to recognise it. */
export class LockError extends Error {
  override readonly name: string = "LockError";
  readonly code: LockErrorCode;
  readonly key: string | undefined;
  /** Whether the same call may succeed later without anything being changed. */
  readonly retryable: boolean;

  constructor(message: string, details: LockErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.key = details.key;
    this.retryable = details.retryable ?? false;
    Object.defineProperty(this, brand, { value: true });
  }

  /** Safe to log: fencing tokens as decimal strings, no secret. */
  toJSON(): Record<string, unknown> {
    const { name, code, message, key, retryable } = this;
    return { name, code, message, key, retryable };
  }
}

/** `waitMs` passed, and the lock is held or the latch is not open. */
export class WaitTimeoutError extends LockError {
  override readonly name = "WaitTimeoutError";
  /** Who held it when we were last told. */
  readonly holder: Holder | undefined;
  /** Our place in the queue then, from 0. Of a caller that waited in its process's own line: at least, as only the line is counted. */
  readonly position: number | undefined;

  /** @param remaining of a latch: what is left of its count */
  constructor(key: string, waitMs: number, holder?: Holder, position?: number, remaining?: number) {
    const by = holder === undefined ? "" : ` by ${holder.owner}`;
    const what =
      remaining === undefined
        ? `The lock "${key}" is still held${by}`
        : `The latch "${key}" still lacks ${remaining}`;
    super(`${what} after ${waitMs} ms`, { code: "wait-timeout", key, retryable: true });
    this.holder = holder;
    this.position = position;
  }

  override toJSON(): Record<string, unknown> {
    const { holder, position } = this;
    const fencingToken = holder?.fencingToken?.toString();
    return { ...super.toJSON(), holder: holder && { ...holder, fencingToken }, position };
  }
}

/** The key is another kind of lock. */
export function kindMismatch(key: string, present: string, cause?: unknown): LockError {
  return new LockError(`"${key}" is another kind of lock: ${present}`, { code: "kind-mismatch", key, cause });
}

/** The semaphore has another limit. */
export function limitMismatch(key: string, present: number): LockError {
  const message = `The semaphore "${key}" has the limit ${present}; setLimit() changes it`;
  return new LockError(message, { code: "limit-mismatch", key });
}

/** The latch began with another count. */
export function countMismatch(key: string, present: number): LockError {
  const message = `The latch "${key}" has the count ${present}`;
  return new LockError(message, { code: "limit-mismatch", key });
}

/** The latch that the caller knew is over; there may be another one of its key. */
export function latchExpired(key: string): LockError {
  return new LockError(`The latch "${key}" is over: its TTL has passed`, { code: "latch-expired", key });
}

/** Ownership ended without a release, or (reason `released`) the lease was used after it. */
export class LeaseLostError extends LockError {
  override readonly name = "LeaseLostError";
  readonly reason: LossReason;
  /** When we found out, on the wall clock, in milliseconds since the epoch. */
  readonly lostAt: number;
  /** Of `withLock`: the value of the work, which did end. */
  readonly result: unknown;

  constructor(
    key: string,
    reason: LossReason,
    lostAt: number,
    more: { cause?: unknown; result?: unknown } = {},
  ) {
    super(`The lease of "${key}" is lost: ${reason}`, { code: "lease-lost", key, cause: more.cause });
    this.reason = reason;
    this.lostAt = lostAt;
    this.result = more.result;
  }

  override toJSON(): Record<string, unknown> {
    const { reason, lostAt } = this;
    return { ...super.toJSON(), reason, lostAt };
  }
}

/**
 * The engine cannot be reached, or refused; with the code `replicas-not-reached` fewer replicas than asked have acknowledged, and the
 * grant was rolled back. Never to be read as "the lock is free".
 */
export class EngineError extends LockError {
  override readonly name = "EngineError";
  readonly outcome: Outcome;
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

/** What one node of a quorum said, or why it said nothing that counts. */
export interface NodeVote {
  readonly node: string;
  /**
   * `granted`: ours; `held`: another's; `timeout`, `error`: no answer, or none of use; `quarantined`: it may have forgotten, its
   * clock is off, or it is no master of its own.
   */
  readonly vote: "granted" | "held" | "timeout" | "error" | "quarantined";
  /** From the question to the answer, ms; null: there was none. */
  readonly latencyMs: number | null;
  readonly reason: string | null;
}

/** Too few nodes said yes, and not because another has the lock. Never to be read as "the lock is free". */
export class QuorumError extends LockError {
  override readonly name = "QuorumError";
  /** One for each node, in the order in which they were given. */
  readonly votes: readonly NodeVote[];
  readonly outcome: Outcome;
  /** After this time enough nodes may vote again, as far as we know. */
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
    const answers = votes
      .map(({ node, vote, reason }) => `${node} ${vote}${reason === null ? "" : ` (${reason})`}`)
      .join(", ");
    const keyText = key === undefined ? "" : ` for "${key}"`;
    super(`No ${needed} of ${votes.length} nodes agreed${keyText}: ${answers}`, {
      ...details,
      code: "quorum-not-reached",
    });
    this.votes = votes;
    this.outcome = details.outcome;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** The same, told of one key. */
  forKey(key: string | undefined): QuorumError {
    const { votes, outcome, retryable, retryAfterMs, cause } = this;
    return new QuorumError({ key, votes, outcome, retryable, retryAfterMs, cause });
  }

  override toJSON(): Record<string, unknown> {
    const { votes, outcome, retryAfterMs } = this;
    return { ...super.toJSON(), votes, outcome, retryAfterMs };
  }
}

/** Whether `error` is Holdfast's, of this or another copy of the package, and has that code if one is given. */
export function isLockError(error: unknown, code?: LockErrorCode): error is LockError {
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
  return new LockError("This Locks instance is closed", { code: "closed", key });
}
