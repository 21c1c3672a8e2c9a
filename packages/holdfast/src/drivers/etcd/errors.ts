import type { Outcome } from "../../errors.ts";
import { messageOf } from "../../runtime/error-message.ts";
import type { StoreFailure } from "../store/lease-store.ts";

/** Codes of gRPC. */
const grpc = { notFound: 5, resourceExhausted: 8, unauthenticated: 16 } as const;

/** Cancelled, unknown, deadline exceeded, aborted, internal and unavailable: the server may have executed the request. */
const unknownOutcome = new Set([1, 2, 4, 10, 13, 14]);
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
export class EtcdError extends Error {
  /** The code of gRPC; null: no reply of etcd. */
  readonly code: number | null;
  readonly outcome: Outcome;
  readonly retryable: boolean;

  constructor(
    message: string,
    failure: { code: number | null; outcome: Outcome; retryable: boolean; cause?: unknown },
  ) {
    super(`etcd: ${message}`, { cause: failure.cause });
    this.name = "EtcdError";
    this.code = failure.code;
    this.outcome = failure.outcome;
    this.retryable = failure.retryable;
  }
}

/** The error of a reply with another status than 200. */
export function replyError(status: number, body: string): EtcdError {
  const { message = `HTTP status ${status}`, grpc_code, code = grpc_code ?? null } = failureIn(body);
  if (code === null || unknownOutcome.has(code)) {
    return new EtcdError(message, { code, outcome: "unknown", retryable: true });
  }
  return new EtcdError(message, { code, outcome: "none", retryable: code === grpc.resourceExhausted });
}

interface GatewayFailure {
  readonly message?: string;
  readonly code?: number;
  /** The code in the reply of a stream, in etcd 3.5 and older. */
  readonly grpc_code?: number;
}

/** The failure in a reply, in which a stream nests it. */
function failureIn(body: string): GatewayFailure {
  try {
    const reply = JSON.parse(body) as GatewayFailure & { readonly error?: string | GatewayFailure };
    return typeof reply.error === "object" ? reply.error : reply;
  } catch {
    return {}; // the reply comes from a proxy
  }
}

/** The error of a request without a complete reply. */
export function networkError(error: unknown): EtcdError {
  const { cause } = error as { cause?: { code?: string } };
  const message = messageOf(cause ?? error);
  const outcome = notSent.has(cause?.code ?? "") ? "none" : "unknown";
  return new EtcdError(message, { code: null, outcome, retryable: true, cause: error });
}

/**
 * Whether etcd refused the token of a request: it has expired, or the users or roles have changed since it was issued. The latter is
 * refused by the message alone, as an invalid argument, for tokens of the type JWT.
 */
export function needsNewToken({ code, message }: EtcdError): boolean {
  return code === grpc.unauthenticated || message.endsWith("revision of auth store is old");
}

export function isNotFound(error: unknown): boolean {
  return error instanceof EtcdError && error.code === grpc.notFound;
}

export function etcdFailure(error: unknown): StoreFailure {
  return error instanceof EtcdError
    ? { message: error.message, outcome: error.outcome, retryable: error.retryable }
    : { message: `etcd: ${String(error)}`, outcome: "unknown", retryable: false };
}
