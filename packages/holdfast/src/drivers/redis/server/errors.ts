import {
  countMismatch,
  EngineError,
  isLockError,
  kindMismatch,
  limitMismatch,
  LockError,
  type Outcome,
} from "../../../errors.ts";

/** What passes only if somebody changes something. Everything else is worth another try. */
const permanent =
  /\b(NOAUTH|NOPERM|NODATABASE|WRONGPASS|WRONGTYPE|KINDMISMATCH|LIMITMISMATCH|COUNTMISMATCH|COUNTER|DENIED|ERR (unknown command|AUTH|invalid password|DB index is out of range|SELECT is not allowed|The user executing the script|ACL failure in script))\b/;

/** The server answered with an error: nothing was carried out. Redis 6.2 says first where in the script it was. */
const refusedByServer =
  /^(?:@user_script: ?\d+: -?)?(ERR|NO[A-Z]+|WRONG[A-Z]+|OOM|LOADING|READONLY|BUSY|MISCONF|MASTERDOWN|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|CROSSSLOT|DENIED|KINDMISMATCH|LIMITMISMATCH|COUNTMISMATCH|COUNTER)\b/;

/** The error is the server's own answer, and no failure of the way to it. */
export function isServerReply(error: unknown): boolean {
  return !isLockError(error) && refusedByServer.test(messageOf(error));
}

/** Whether another try may succeed by itself. */
export function isTransient(error: unknown): boolean {
  return isLockError(error) ? error.retryable : !permanent.test(messageOf(error));
}

/** The server refuses the command as such: to this user, or to everybody. Another try has the same answer. */
export function isForbidden(error: unknown): boolean {
  return /\b(NOPERM|ERR unknown command)\b/.test(messageOf(error));
}

/** It was sent to a server that is no primary, or no longer. */
export function isReadOnlyError(error: unknown): boolean {
  return messageOf(error).includes("READONLY");
}

/** Why an operation with a token of an earlier client id is not sent. */
export function clonedError(): EngineError {
  return new EngineError(
    "Redis: another process has this client id: it is a clone of this machine, and has the same tokens",
    {
      outcome: "unknown",
      retryable: false,
    },
  );
}

/** A failure of the server or of the way to it, in the words of the contract. */
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

/** Redis 7 leaves the code out where a script lacked the right. */
function withCode(message: string): string {
  const isPermission = /\b(The user executing the script|ACL failure in script)\b/.test(message);
  return isPermission && !message.includes("NOPERM") ? `NOPERM: ${message}` : message;
}

/** The key is something else than what was asked for; undefined: it is another failure. */
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

/** What a request may have left behind that failed so: nothing where the server itself refused it. */
export function outcomeOf(error: unknown): Outcome {
  if (error instanceof EngineError) {
    return error.outcome;
  }
  return refusedByServer.test(messageOf(error)) ? "none" : "unknown";
}

/** The same error, told of one key. */
function detailsOf(error: EngineError, key: string, outcome: Outcome): EngineError {
  const { message, retryable, cause } = error;
  const code = error.code === "replicas-not-reached" ? error.code : "engine-unavailable";
  const text = error.outcome === "none" ? "none" : outcome;
  return new EngineError(message, { key, outcome: text, retryable, cause, code });
}

/** The script ran and answered with an error for one operation: nothing of it is unknown. */
export function serverRefusal(message: string): Error {
  return new Error(message);
}

export function queueFullError(key: string): LockError {
  return new LockError(`The queue of "${key}" is full`, { code: "too-many-waiters", key, retryable: true });
}

export function expiredError(): EngineError {
  return new EngineError("The grant had expired before it arrived", { outcome: "none", retryable: true });
}

/** Told of a write that the primary has done: what becomes of it is up to who asked for it. */
export function replicasError(acknowledged: number, wanted: number): EngineError {
  const message = `${acknowledged} of at least ${wanted} replicas have acknowledged in time`;
  return new EngineError(message, { outcome: "unknown", retryable: true, code: "replicas-not-reached" });
}

export function timeoutError(ms: number): EngineError {
  return new EngineError(`Redis did not answer within ${Math.round(ms)} ms`, {
    outcome: "unknown",
    retryable: true,
  });
}

export function unresponsiveError(): EngineError {
  return new EngineError("Redis does not answer", { outcome: "none", retryable: true });
}

export function unsupportedCluster(version: string): LockError {
  const message = `Redis Cluster is supported from Redis 7 on, which has messages within a slot: this is ${version}`;
  return new LockError(message, { code: "unsupported" });
}

/** Clients put the command that failed into their errors, and with it the token: it must not get into a log. */
function withoutCommand(error: unknown): unknown {
  return error instanceof Error && ("command" in error || "previousErrors" in error)
    ? new Error(error.message)
    : error;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
