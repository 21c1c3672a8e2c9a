import type { Outcome } from "../../../errors.ts";
import type { StoreFailure } from "../../store/lease-store.ts";

/** Error codes of ZooKeeper that the driver handles. */
export const codes = {
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  authFailed: -115,
  sessionMoved: -118,
} as const;

/** An operation of a `multi` that was not executed, because another operation failed. */
const notExecuted = -2;

const names: Readonly<Record<number, string>> = {
  [-1]: "system error",
  [-5]: "the server could not read the request",
  [-6]: "the operation is not supported (the driver needs ZooKeeper 3.5 or newer)",
  [-7]: "the operation timed out",
  [-8]: "invalid arguments",
  [codes.noNode]: "the node does not exist",
  [codes.noAuth]: "the user has no permission",
  [codes.badVersion]: "the node has another version",
  [-108]: "an ephemeral node has no children",
  [codes.nodeExists]: "the node exists",
  [codes.notEmpty]: "the node has children",
  [codes.sessionExpired]: "the session has expired",
  [-114]: "the access control list is invalid",
  [codes.authFailed]: "authentication failed",
  [codes.sessionMoved]: "the session has moved to another connection",
  [-119]: "the server is read-only",
  [-125]: "the quota is exceeded",
  [-127]: "the server is overloaded",
};

/** Codes after which the repeat of a request may succeed: system error, time-out, session, read-only, overload. */
const transient = new Set<number>([-1, -4, -7, codes.sessionExpired, codes.sessionMoved, -119, -127]);
/** Codes after which the request may have been executed. */
const unknownOutcome = new Set<number>([-1, -4, -7]);

/** A request that failed. */
export class ZooKeeperError extends Error {
  /** The code of ZooKeeper; null: no reply. */
  readonly code: number | null;
  readonly outcome: Outcome;
  readonly retryable: boolean;

  constructor(
    message: string,
    failure: { code: number | null; outcome: Outcome; retryable: boolean; cause?: unknown },
  ) {
    super(`ZooKeeper: ${message}`, { cause: failure.cause });
    this.name = "ZooKeeperError";
    this.code = failure.code;
    this.outcome = failure.outcome;
    this.retryable = failure.retryable;
  }
}

/** The error of a reply with an error code. */
export function replyError(code: number): ZooKeeperError {
  const outcome = unknownOutcome.has(code) ? "unknown" : "none";
  return new ZooKeeperError(names[code] ?? `error ${code}`, {
    code,
    outcome,
    retryable: transient.has(code),
  });
}

/** The error of a `multi`, of which no operation was executed. @param results the codes of its operations */
export function multiError(results: readonly number[]): ZooKeeperError {
  return replyError(results.find((code) => code !== 0 && code !== notExecuted) ?? notExecuted);
}

/** The error of a reply that is not one of ZooKeeper. */
export function protocolError(detail: string): ZooKeeperError {
  return new ZooKeeperError(`unexpected reply: ${detail}`, {
    code: null,
    outcome: "unknown",
    retryable: true,
  });
}

/** The error of a request without a reply. */
export function connectionError(message: string, outcome: Outcome, cause?: unknown): ZooKeeperError {
  return new ZooKeeperError(message, { code: null, outcome, retryable: true, cause });
}

export function hasCode(error: unknown, code: number): boolean {
  return error instanceof ZooKeeperError && error.code === code;
}

export function zooKeeperFailure(error: unknown): StoreFailure {
  return error instanceof ZooKeeperError
    ? { message: error.message, outcome: error.outcome, retryable: error.retryable }
    : { message: `ZooKeeper: ${String(error)}`, outcome: "unknown", retryable: false };
}
