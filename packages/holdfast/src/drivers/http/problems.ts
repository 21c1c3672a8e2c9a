import {
  EngineError,
  LeaseLostError,
  LockError,
  QuorumError,
  WaitTimeoutError,
  type LockErrorCode,
} from "../../errors.ts";
import type { Holder } from "../../lock-state.ts";
import type { HttpResponse } from "./client.ts";
import type { ServiceCode, WireHolder, WireLease, WireProblem } from "./wire.ts";

/** Codes of the library that have no error class and no fields of their own. */
const lockCodes: ReadonlySet<string> = new Set<LockErrorCode>([
  "self-deadlock",
  "kind-mismatch",
  "limit-mismatch",
  "too-many-waiters",
  "latch-expired",
  "unsupported",
  "invalid-key",
]);

/** Codes of the service only. The error is an `EngineError` whose cause has the code. */
const serviceCodes: ReadonlySet<string> = new Set<ServiceCode>([
  "invalid",
  "unauthenticated",
  "forbidden",
  "not-found",
  "rate-limited",
  "draining",
]);

/** The problem in a reply. A reply that is not the service's becomes a problem as well, because a proxy may have sent that reply. */
export function problemOf({ status, body }: Pick<HttpResponse, "status" | "body">): WireProblem {
  if (isProblem(body)) {
    return body;
  }
  const isTransient = status < 300 || status >= 500 || status === 408 || status === 429;
  return {
    type: "about:blank",
    title: "Not a lock service",
    status,
    detail: `the reply with status ${status} does not come from a lock service`,
    code: "engine-unavailable",
    retryable: isTransient,
    outcome: isTransient ? "unknown" : "none",
  };
}

/**
 * The lease in a reply. Its numbers are checked, because an invalid number would make the lease valid forever.
 * @throws {EngineError} if the body is not a lease
 */
export function leaseOf(status: number, body: unknown): WireLease {
  const { leaseId, fencingToken, validMs, queuedMs } = (body ?? {}) as Partial<WireLease>;
  const isLease =
    typeof leaseId === "string" &&
    /^\d+$/.test(String(fencingToken)) &&
    Number.isFinite(validMs) &&
    Number.isFinite(queuedMs);
  if (!isLease) {
    throw errorOf(problemOf({ status, body: undefined }));
  }
  return body as WireLease;
}

/** The library's error for a problem. A code of the service only becomes an `EngineError`. */
export function errorOf(problem: WireProblem, key?: string): LockError {
  const { code, detail, retryable, outcome, retryAfterMs } = problem;
  const suffix = problem.key ?? key;
  if (code === "wait-timeout") {
    return new WaitTimeoutError(suffix ?? "", 0, holderOf(problem.holder), problem.position);
  } else if (code === "lease-lost") {
    return new LeaseLostError(suffix ?? "", problem.reason ?? "expired", problem.lostAt ?? 0);
  } else if (code === "quorum-not-reached") {
    return new QuorumError({ key: suffix, votes: problem.votes ?? [], outcome, retryable, retryAfterMs });
  } else if (lockCodes.has(code)) {
    return new LockError(detail, { code: code as LockErrorCode, key: suffix, retryable });
  }
  return engineErrorOf(problem, suffix);
}

function engineErrorOf(problem: WireProblem, key: string | undefined): EngineError {
  const { code, detail, retryable, outcome, retryAfterMs } = problem;
  return new EngineError(`The lock service: ${detail}`, {
    key,
    outcome,
    retryable,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(code === "replicas-not-reached" && { code }),
    ...(serviceCodes.has(code) && { cause: Object.assign(new Error(detail), { code }) }),
  });
}

export function holderOf(holder: WireHolder | undefined): Holder | undefined {
  if (!holder) {
    return undefined;
  }
  const { fencingToken, ...rest } = holder;
  return fencingToken === undefined ? rest : { ...rest, fencingToken: BigInt(fencingToken) };
}

function isProblem(body: unknown): body is WireProblem {
  const { code, status, detail } = (body ?? {}) as Partial<WireProblem>;
  return typeof code === "string" && typeof status === "number" && typeof detail === "string";
}
