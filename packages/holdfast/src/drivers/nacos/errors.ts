import type { Outcome } from "../../errors.ts";
import { messageOf } from "../../runtime/error-message.ts";
import type { StoreFailure } from "../store/lease-store.ts";

/** Error codes in the replies of Nacos (`ErrorCode` of its source). */
const codes = { notFound: 20_004, conflict: 20_005 };

/** Errors of the network before a request was sent. */
const notSent = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** A request that failed. */
export class NacosError extends Error {
  /** The HTTP status; null: no complete reply. */
  readonly status: number | null;
  /** The error code in the reply; null: none. */
  readonly code: number | null;
  readonly outcome: Outcome;
  readonly retryable: boolean;

  constructor(
    message: string,
    failure: { status?: number; code?: number | null; outcome: Outcome; retryable: boolean; cause?: unknown },
  ) {
    super(`Nacos: ${message}`, { cause: failure.cause });
    this.name = "NacosError";
    this.status = failure.status ?? null;
    this.code = failure.code ?? null;
    this.outcome = failure.outcome;
    this.retryable = failure.retryable;
  }
}

/** The error of a reply with another status than 200, or with an error code. */
export function replyError(status: number, body: string): NacosError {
  const { code, message, detail } = failureIn(body);
  const isServerError = status >= 500;
  return new NacosError(detail || message || `HTTP status ${status}`, {
    status,
    code,
    outcome: isServerError ? "unknown" : "none",
    retryable: isServerError || status === 429,
  });
}

/** The JSON of Nacos; all fields are empty for the reply of a proxy, or of an old path. */
function failureIn(body: string): { code: number | null; message: string; detail: string } {
  try {
    const { code, message, data } = JSON.parse(body) as { code?: unknown; message?: unknown; data?: unknown };
    return {
      code: typeof code === "number" ? code : null,
      message: typeof message === "string" ? message : "",
      detail: typeof data === "string" ? data : "",
    };
  } catch {
    return { code: null, message: "", detail: "" };
  }
}

/** The error of a request without a complete reply. */
export function networkError(error: unknown): NacosError {
  const { cause } = error as { cause?: { code?: string } };
  const message = messageOf(cause ?? error);
  const outcome = notSent.has(cause?.code ?? "") ? "none" : "unknown";
  return new NacosError(message, { outcome, retryable: true, cause: error });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof NacosError && error.code === codes.notFound;
}

/** Whether the compare-and-set was refused. */
export function isConflict(error: unknown): boolean {
  return error instanceof NacosError && error.code === codes.conflict;
}

/** Whether the server replied that it failed. */
export function isServerError(error: unknown): boolean {
  return error instanceof NacosError && error.status !== null && error.status >= 500;
}

export function nacosFailure(error: unknown): StoreFailure {
  return error instanceof NacosError
    ? { message: error.message, outcome: error.outcome, retryable: error.retryable }
    : { message: `Nacos: ${String(error)}`, outcome: "unknown", retryable: false };
}
