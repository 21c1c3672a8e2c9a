import type { ServiceCode } from "holdfast/http";

/** An error of the service itself, with its code. */
export class ServiceError extends Error {
  readonly code: ServiceCode;
  readonly status: number;
  readonly extras: {
    readonly retryAfterMs?: number;
    readonly key?: string;
    readonly fencingToken?: string | null;
  };

  constructor(
    code: ServiceCode,
    detail: string,
    more: ServiceError["extras"] = {},
    status: number = serviceStatuses[code],
  ) {
    super(detail);
    this.code = code;
    this.status = status;
    this.extras = more;
  }
}

export const serviceStatuses: Readonly<Record<ServiceCode, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  "not-found": 404,
  "fence-mismatch": 412,
  "rate-limited": 429,
  draining: 503,
};
