import {
  countMismatch,
  EngineError,
  isLockError,
  kindMismatch,
  limitMismatch,
  LockError,
  type Outcome,
} from "../../../errors.ts";
import { messageOf } from "../../../runtime/error-message.ts";
import type { Connection } from "../clients/connection.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { AcquireRequest, AcquireResult } from "../../../driver.ts";
import type { Holder } from "../../../lock-state.ts";
import { withTimeout } from "../../../runtime/timeout.ts";

export { messageOf };

/** Errors that persist until an operator or a program changes something. All other errors are transient. */
const permanent =
  /\b(NOAUTH|NOPERM|NODATABASE|WRONGPASS|WRONGTYPE|KINDMISMATCH|LIMITMISMATCH|COUNTMISMATCH|COUNTER|DENIED|ERR (unknown command|AUTH|invalid password|DB index is out of range|SELECT is not allowed|The user executing the script|ACL failure in script))\b/;

/** Error replies of the server, which executed nothing. Redis 6.2 puts the line of the script first. */
const refusedByServer =
  /^(?:@user_script: ?\d+: -?)?(ERR|NO[A-Z]+|WRONG[A-Z]+|OOM|LOADING|READONLY|BUSY|MISCONF|MASTERDOWN|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|CROSSSLOT|DENIED|KINDMISMATCH|LIMITMISMATCH|COUNTMISMATCH|COUNTER)\b/;

/** Whether the error is a reply of the server, and not a failure of the connection. */
export function isServerReply(error: unknown): boolean {
  return !isLockError(error) && refusedByServer.test(messageOf(error));
}

/** Whether a repeat may succeed without a change by an operator or a program. A `TypeError` is a mistake of a program. */
export function isTransient(error: unknown): boolean {
  return isLockError(error)
    ? error.retryable
    : !(error instanceof TypeError) && !permanent.test(messageOf(error));
}

/** Whether the command was sent to a replica. */
export function isReadOnlyError(error: unknown): boolean {
  return messageOf(error).includes("READONLY");
}

/** The failure of an operation with a token of a former client ID. */
export function clonedError(): EngineError {
  return new EngineError(
    "Redis: another process has this client id: it is a clone of this machine, and has the same tokens",
    {
      outcome: "unknown",
      retryable: false,
    },
  );
}

/** A failure of the server or of its connection, as the driver contract requires. */
export function engineError(error: unknown, key: string | undefined, outcome: Outcome): LockError {
  if (isLockError(error)) {
    return error instanceof EngineError && key !== undefined ? detailsOf(error, key, outcome) : error;
  }
  return (
    mismatch(error, key ?? "") ??
    new EngineError(`Redis: ${withCode(messageOf(error))}`, {
      key,
      outcome,
      retryable: isTransient(error),
      cause: withoutCommand(error),
    })
  );
}

/** Adds the name of the server and, while the connection is down, the reason of its failure. */
export function withServer(
  error: LockError,
  connection: Pick<Connection, "name" | "failure" | "blockedBy">,
): LockError {
  if (!(error instanceof EngineError) || !/^Redis(?=:| d)/.test(error.message)) {
    return error;
  }
  const { key, outcome, retryable } = error;
  const code = error.code === "replicas-not-reached" ? error.code : "engine-unavailable";
  const server = `Redis at ${connection.name}`;
  const blocker = / answer/.test(error.message) ? connection.blockedBy?.() : undefined;
  const why =
    blocker === undefined
      ? ""
      : `: the program's ${blocker} blocks the connection; give it a client of its own, such as client.duplicate()`;
  const failure = isServerReply(error.cause) ? undefined : connection.failure?.();
  return failure === undefined
    ? new EngineError(error.message.replace("Redis", server) + why, {
        key,
        outcome,
        retryable,
        code,
        cause: error.cause,
      })
    : new EngineError(`${server} is unreachable: ${messageOf(failure)}`, {
        key,
        outcome,
        retryable,
        code,
        cause: withoutCommand(failure),
      });
}

/** Adds the code that Redis 7 omits if a script lacked a permission. */
function withCode(message: string): string {
  const isPermission = /\b(The user executing the script|ACL failure in script)\b/.test(message);
  return isPermission && !message.includes("NOPERM") ? `NOPERM: ${message}` : message;
}

/** The error of a key that has another type, kind, limit or count. Undefined for other failures. */
function mismatch(error: unknown, key: string): LockError | undefined {
  const message = messageOf(error);
  if (/\bWRONGTYPE\b/.test(message)) {
    return kindMismatch(key, "its key on the server has another type", withoutCommand(error));
  }
  const [, detail, present = ""] = /^(KIND|LIMIT|COUNT)MISMATCH (.+)$/.exec(message) ?? [];
  if (detail === "KIND") {
    return kindMismatch(key, present);
  } else if (detail === "LIMIT") {
    return limitMismatch(key, Number(present));
  }
  return detail === "COUNT" ? countMismatch(key, Number(present)) : undefined;
}

/** The outcome of a request with this failure. `none` if the server itself refused the request. */
export function outcomeOf(error: unknown): Outcome {
  if (error instanceof EngineError) {
    return error.outcome;
  }
  return refusedByServer.test(messageOf(error)) ? "none" : "unknown";
}

/** The error with the details of one key. */
function detailsOf(error: EngineError, key: string, outcome: Outcome): EngineError {
  const { message, retryable, cause } = error;
  const code = error.code === "replicas-not-reached" ? error.code : "engine-unavailable";
  const text = error.outcome === "none" ? "none" : outcome;
  return new EngineError(message, { key, outcome: text, retryable, cause, code });
}

/** The reply to a script is not that of a server. */
export function noScriptReply(reply: unknown): EngineError {
  const message = `Redis: the reply to a script is of the type ${typeof reply}: is the client a mock, or does a program between it and the server change replies?`;
  return new EngineError(message, { outcome: "unknown", retryable: false });
}

/** The script ran and refused one operation. The outcome is known. */
export function serverRefusal(message: string): Error {
  return new Error(message);
}

export function queueFullError(key: string): LockError {
  return new LockError(`The queue of "${key}" is full`, { code: "too-many-waiters", key, retryable: true });
}

export function expiredError(): EngineError {
  return new EngineError("The grant had expired before it arrived", { outcome: "none", retryable: true });
}

/** The primary has executed a write that too few replicas acknowledged. The caller decides whether to roll it back. */
export function replicasError(acknowledged: number, required: number): EngineError {
  const message = `${acknowledged} of at least ${required} replicas have acknowledged in time`;
  return new EngineError(message, { outcome: "unknown", retryable: true, code: "replicas-not-reached" });
}

export function timeoutError(ms: number): EngineError {
  return new EngineError(`Redis did not answer within ${Math.round(ms)} ms`, {
    outcome: "unknown",
    retryable: true,
  });
}

/**
 * The failure of every call to a server that is known not to answer. It is one object, because while a node of a quorum is down, each
 * operation fails there, and the stack traces would cost more than the operations. Callers get an error of their own.
 */
export const unresponsive: EngineError = new EngineError("Redis does not answer", {
  outcome: "none",
  retryable: true,
});

export function unsupportedCluster(version: string): LockError {
  const message = `Redis Cluster is supported from Redis 7 on, which has messages within a slot: this is ${version}`;
  return new LockError(message, { code: "unsupported" });
}

/** Removes the command from an error of a client library. The command has the token, which must not get into a log. */
function withoutCommand(error: unknown): unknown {
  return error instanceof Error && ("command" in error || "previousErrors" in error)
    ? new Error(messageOf(error))
    : error;
}

/** How long after its deadline a waiter may wait for the name of the holder. */
const maxInspectMs = 250;

interface HolderLookup {
  readonly clock: Clock;
  holderOf(key: string): Promise<Holder | undefined>;
}

/**
 * The result of a waiter after its deadline, with the holder of the lock. The request for the holder follows the removal of the queue
 * entry, so its reply shows that the entry is removed.
 */
export async function waitTimedOut(
  host: HolderLookup,
  { key, waiter }: AcquireRequest,
  position: number | undefined,
): Promise<AcquireResult> {
  waiter?.onDequeued();
  const request = host.holderOf(key).catch(() => undefined);
  const holder = await withTimeout(host.clock, maxInspectMs, request);
  return { outcome: "held", holder, position };
}
