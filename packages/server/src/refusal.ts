import type { ServiceCode } from "holdfast/http";

/** What the service itself refuses. */
export class Refusal extends Error {
  readonly code: ServiceCode;
  readonly status: number;
  readonly more: {
    readonly retryAfterMs?: number;
    readonly key?: string;
    readonly fencingToken?: string | null;
  };

  constructor(
    code: ServiceCode,
    detail: string,
    more: Refusal["more"] = {},
    status: number = ofService[code],
  ) {
    super(detail);
    this.code = code;
    this.status = status;
    this.more = more;
  }
}

export const ofService: Readonly<Record<ServiceCode, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  "not-found": 404,
  "fence-mismatch": 412,
  "rate-limited": 429,
  draining: 503,
};
