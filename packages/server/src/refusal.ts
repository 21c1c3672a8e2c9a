import type { ServiceCode } from "holdfast/http";

import type { Log } from "./log.ts";

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

/** Each client has one line of a code in this time, ms. */
const quietMs = 10_000;
/** How many clients are remembered. */
const maxClients = 1_000;

interface Refused {
  readonly code: string;
  readonly principal: string | undefined;
}

/**
 * Logs refused requests as warnings: the first of each client, and then one in a while with the number of those since, which are only
 * for debugging. The detail of a refusal names keys and principals, but no token and no header.
 */
export class RefusalLog {
  readonly #log: Log;
  readonly #seen = new Map<string, { nextAt: number; more: number }>();

  constructor(log: Log) {
    this.#log = log;
  }

  report(refused: Refused, remote: string | undefined, detail: string): void {
    const client = `${refused.code} ${refused.principal ?? remote ?? ""}`;
    const now = performance.now();
    const seen = this.#seen.get(client);
    if (seen && now < seen.nextAt) {
      seen.more += 1;
      this.#log({ level: "debug", event: "refused", ...refused, remote, detail });
      return;
    }
    this.#seen.delete(client);
    this.#seen.set(client, { nextAt: now + quietMs, more: 0 });
    if (this.#seen.size > maxClients) {
      this.#seen.delete(this.#seen.keys().next().value as string);
    }
    const more = seen?.more ?? 0;
    this.#log({ level: "warn", event: "refused", ...refused, remote, detail, ...(more > 0 && { more }) });
  }
}
