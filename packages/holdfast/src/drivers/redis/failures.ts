import { EngineError, isLockError, LockError, type Outcome } from "../../errors.ts";

/** What passes only if somebody changes something. Everything else is worth another try. */
const permanent =
  /\b(NOAUTH|NOPERM|WRONGPASS|DENIED|ERR (unknown command|AUTH|invalid password|The user executing the script))\b/;

/** Whether another try may succeed by itself. */
export function isTransient(error: unknown): boolean {
  return isLockError(error) ? error.retryable : !permanent.test(messageOf(error));
}

/** A failure of the server or of the way to it, in the words of the contract. */
export function engineError(error: unknown, key: string | undefined, outcome: Outcome): LockError {
  if (isLockError(error)) {
    return error;
  }
  const message = messageOf(error);
  if (/\bWRONGTYPE\b/.test(message)) {
    return new LockError(`"${key ?? ""}" is not a mutex: its key on the server has another type`, {
      code: "kind-mismatch",
      key,
      cause: withoutCommand(error),
    });
  }
  return new EngineError(`Redis: ${message}`, {
    key,
    outcome,
    retryable: isTransient(error),
    cause: withoutCommand(error),
  });
}

/** The script ran and answered with an error for one operation: nothing of it is unknown. */
export function refusalBy(message: string): Error {
  return new Error(message);
}

export function timeoutError(ms: number): EngineError {
  return new EngineError(`Redis did not answer within ${ms} ms`, { outcome: "unknown", retryable: true });
}

/** Clients put the command that failed into their errors, and with it the token: it must not get into a log. */
function withoutCommand(error: unknown): unknown {
  return error instanceof Error && ("command" in error || "previousErrors" in error)
    ? new Error(error.message)
    : error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
