import { HTTPException } from "hono/http-exception";
import {
  isLockError,
  type EngineError,
  type Holder,
  type LockError,
  type LockErrorCode,
  type QuorumError,
} from "holdfast";
import type { ServiceCode, WireHolder, WireProblem } from "holdfast/http";

import { serviceStatuses, ServiceError } from "./refusal.ts";

const lockStatuses: Readonly<Record<LockErrorCode, number>> = {
  "wait-timeout": 423,
  "lease-lost": 410,
  "kind-mismatch": 409,
  "limit-mismatch": 409,
  "self-deadlock": 409,
  "latch-expired": 410,
  "too-many-waiters": 429,
  unsupported: 501,
  "invalid-key": 400,
  "engine-unavailable": 503,
  "replicas-not-reached": 503,
  "quorum-not-reached": 503,
  closed: 503,
};

/** The status of each code; for `engine-unavailable`, if the outcome is known. */
export const statuses: Readonly<Record<LockErrorCode | ServiceCode, number>> = {
  ...lockStatuses,
  ...serviceStatuses,
};

const titles: Readonly<Record<LockErrorCode | ServiceCode, string>> = {
  "wait-timeout": "Lock held",
  "lease-lost": "Lease lost",
  "kind-mismatch": "Lock kind mismatch",
  "limit-mismatch": "Limit mismatch",
  "self-deadlock": "Self-deadlock",
  "latch-expired": "Latch expired",
  "too-many-waiters": "Too many waiters",
  unsupported: "Not supported",
  "invalid-key": "Invalid key",
  "engine-unavailable": "Engine unavailable",
  "replicas-not-reached": "Replicas not reached",
  "quorum-not-reached": "Quorum not reached",
  closed: "Service closed",
  invalid: "Invalid request",
  unauthenticated: "Authentication required",
  forbidden: "Forbidden",
  "not-found": "Not found",
  "fence-mismatch": "Fencing token mismatch",
  "rate-limited": "Too many requests",
  draining: "Service shutting down",
};

/** The problem document of an error. An unexpected error has no details in it, because they may contain a secret. */
export function problemOf(error: unknown): WireProblem {
  if (error instanceof ServiceError) {
    const { code, message, extras, status } = error;
    const retryable = code === "rate-limited" || code === "draining";
    return { ...headOf(code, status, message), retryable, outcome: "none", ...extras };
  }
  if (isLockError(error)) {
    return problemOfLock(error);
  }
  if (isInvalidValue(error)) {
    return { ...headOf("invalid", 400, error.message), retryable: false, outcome: "none" };
  }
  if (error instanceof HTTPException && error.status < 500) {
    const detail = error.status === 415 ? notJson : error.message;
    return { ...headOf("invalid", error.status, detail), retryable: false, outcome: "none" };
  }
  const detail = "The service failed; its log has the details";
  return { ...headOf("engine-unavailable", 500, detail), retryable: true, outcome: "unknown" };
}

/** A form from a page of any site could have the content types that `curl -d` and browsers send on their own. */
const notJson =
  "Expected JSON with the header `content-type: application/json`; curl sends it with --json, or with -H beside -d";

/** The library's errors for invalid values begin with "Expected". Any other error of these types is a defect of the service. */
function isInvalidValue(error: unknown): error is Error {
  return (error instanceof TypeError || error instanceof RangeError) && error.message.startsWith("Expected ");
}

export function problemResponse(problem: WireProblem): Response {
  const { status, retryAfterMs } = problem;
  return new Response(JSON.stringify(problem), {
    status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...(retryAfterMs !== undefined && { "retry-after": String(Math.ceil(retryAfterMs / 1000)) }),
      ...(status === 401 && { "www-authenticate": "Bearer" }),
    },
  });
}

function wireHolder(holder: Holder): WireHolder {
  const { fencingToken, ...rest } = holder;
  return fencingToken === undefined ? rest : { ...rest, fencingToken: fencingToken.toString() };
}

function problemOfLock(error: LockError): WireProblem {
  const isUnknown = isOfEngine(error) && error.outcome === "unknown";
  const outcome = isUnknown ? "unknown" : "none";
  const code = error.code === "closed" ? "draining" : error.code;
  const status = isUnknown && error.code !== "quorum-not-reached" ? 504 : statuses[error.code];
  return {
    ...headOf(code, status, error.message),
    ...(error.key !== undefined && { key: error.key }),
    retryable: error.retryable || code === "draining",
    outcome,
    ...extrasOf(error),
  };
}

function extrasOf(error: LockError): Partial<WireProblem> {
  if (isLockError(error, "wait-timeout")) {
    const { holder, position } = error;
    return {
      ...(holder && { holder: wireHolder(holder) }),
      ...(position !== undefined && { position }),
      ...(holder?.remainingMs !== undefined && { retryAfterMs: Math.ceil(holder.remainingMs) }),
    };
  }
  if (isLockError(error, "lease-lost")) {
    return { reason: error.reason, lostAt: error.lostAt };
  }
  const retryAfterMs = isOfEngine(error) ? error.retryAfterMs : undefined;
  return {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(isLockError(error, "quorum-not-reached") && { votes: error.votes }),
  };
}

function isOfEngine(error: LockError): error is EngineError | QuorumError {
  return (
    isLockError(error, "engine-unavailable") ||
    isLockError(error, "replicas-not-reached") ||
    isLockError(error, "quorum-not-reached")
  );
}

function headOf(
  code: LockErrorCode | ServiceCode,
  status: number,
  detail: string,
): Pick<WireProblem, "type" | "title" | "status" | "detail" | "code"> {
  return { type: `urn:holdfast:problem:${code}`, title: titles[code], status, detail, code };
}
