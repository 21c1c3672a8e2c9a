import { HTTPException } from "hono/http-exception";
import {
  EngineError,
  isLockError,
  LeaseLostError,
  QuorumError,
  WaitTimeoutError,
  type Holder,
  type LockError,
  type LockErrorCode,
} from "holdfast";
import type { ServiceCode, WireHolder, WireProblem } from "holdfast/http";

import { ofService, Refusal } from "./refusal.ts";

const ofLocks: Readonly<Record<LockErrorCode, number>> = {
  "wait-timeout": 423,
  "lease-lost": 410,
  "kind-mismatch": 409,
  "limit-mismatch": 409,
  "self-deadlock": 409,
  "latch-expired": 410,
  "too-many-waiters": 429,
  unsupported: 501,
  "engine-unavailable": 503,
  "replicas-not-reached": 503,
  "quorum-not-reached": 503,
  closed: 503,
};

/** The status of each code; of `engine-unavailable` where the outcome is known. */
export const statuses: Readonly<Record<LockErrorCode | ServiceCode, number>> = { ...ofLocks, ...ofService };

const titles: Readonly<Record<LockErrorCode | ServiceCode, string>> = {
  "wait-timeout": "The lock is held",
  "lease-lost": "The lease is lost",
  "kind-mismatch": "The key is another kind of lock",
  "limit-mismatch": "The semaphore has another limit",
  "self-deadlock": "It would wait for itself",
  "latch-expired": "The latch is over",
  "too-many-waiters": "Too many wait",
  unsupported: "The engine has no such lock",
  "engine-unavailable": "The engine cannot be reached, or refused",
  "replicas-not-reached": "Too few replicas have acknowledged it",
  "quorum-not-reached": "Too few nodes agreed",
  closed: "The service is closed",
  invalid: "The request is not understood",
  unauthenticated: "Who you are is not known",
  forbidden: "You may not do that",
  "not-found": "There is nothing here",
  "fence-mismatch": "Another grant is the present one",
  "rate-limited": "Too many requests",
  draining: "The service is about to end",
};

/** The problem that a failure is told as. What nobody foresaw says nothing of itself: it may hold a secret. */
export function problemOf(error: unknown): WireProblem {
  if (error instanceof Refusal) {
    const { code, message, more, status } = error;
    const retryable = code === "rate-limited" || code === "draining";
    return { ...headOf(code, status, message), retryable, outcome: "none", ...more };
  }
  if (isLockError(error)) {
    return problemOfLock(error);
  }
  if (isRefusedValue(error)) {
    return { ...headOf("invalid", 400, error.message), retryable: false, outcome: "none" };
  }
  if (error instanceof HTTPException && error.status < 500) {
    return { ...headOf("invalid", error.status, error.message), retryable: false, outcome: "none" };
  }
  const detail = "The service failed; its log tells more";
  return { ...headOf("engine-unavailable", 500, detail), retryable: true, outcome: "unknown" };
}

/** The library refuses a value with its name, what was expected, and what came; any other such error is a fault of ours. */
function isRefusedValue(error: unknown): error is Error {
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
  const isUnknown =
    (error instanceof EngineError || error instanceof QuorumError) && error.outcome === "unknown";
  const outcome = isUnknown ? "unknown" : "none";
  const code = error.code === "closed" ? "draining" : error.code;
  const status = error instanceof EngineError && isUnknown ? 504 : statuses[error.code];
  return {
    ...headOf(code, status, error.message),
    ...(error.key !== undefined && { key: error.key }),
    retryable: error.retryable || code === "draining",
    outcome,
    ...moreOf(error),
  };
}

function moreOf(error: LockError): Partial<WireProblem> {
  if (error instanceof WaitTimeoutError) {
    const { holder, position } = error;
    return {
      ...(holder && { holder: wireHolder(holder) }),
      ...(position !== undefined && { position }),
      ...(holder?.remainingMs !== undefined && { retryAfterMs: Math.ceil(holder.remainingMs) }),
    };
  }
  if (error instanceof LeaseLostError) {
    return { reason: error.reason, lostAt: error.lostAt };
  }
  const retryAfterMs =
    error instanceof EngineError || error instanceof QuorumError ? error.retryAfterMs : undefined;
  return {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(error instanceof QuorumError && { votes: error.votes }),
  };
}

function headOf(
  code: LockErrorCode | ServiceCode,
  status: number,
  detail: string,
): Pick<WireProblem, "type" | "title" | "status" | "detail" | "code"> {
  return { type: `urn:holdfast:problem:${code}`, title: titles[code], status, detail, code };
}
