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

/** What the library itself calls so, and says no more of. */
const lockCodes: ReadonlySet<string> = new Set<LockErrorCode>([
  "self-deadlock",
  "kind-mismatch",
  "limit-mismatch",
  "too-many-waiters",
  "latch-expired",
  "unsupported",
]);

/** What only the service says: its code is that of the error's cause. */
const serviceCodes: ReadonlySet<string> = new Set<ServiceCode>([
  "invalid",
  "unauthenticated",
  "forbidden",
  "not-found",
  "rate-limited",
  "draining",
]);

/** The problem that an answer tells of. What is none of the service's is one all the same: something stands before it. */
export function problemOf({ status, body }: Pick<HttpResponse, "status" | "body">): WireProblem {
  if (isProblem(body)) {
    return body;
  }
  const isTransient = status < 300 || status >= 500 || status === 408 || status === 429;
  return {
    type: "about:blank",
    title: "No answer of a lock service",
    status,
    detail: `status ${status}, and no word of a lock service`,
    code: "engine-unavailable",
    retryable: isTransient,
    outcome: isTransient ? "unknown" : "none",
  };
}

/**
 * A lease that was answered. A number that is none would make it valid for ever.
 * @throws {EngineError} where it is none
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

/** The error that the library tells of a problem with. What only the service knows is a refusal of the engine. */
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
