import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

import { ServiceError } from "./refusal.ts";

/** Limits the request rate of each principal. Renewals and releases are never refused, because that would lose or keep locks. */
export class RateLimit {
  readonly #limiter: RateLimiterMemory;

  constructor(perSecond: number) {
    this.#limiter = new RateLimiterMemory({ points: perSecond, duration: 1 });
  }

  /** @throws {ServiceError} `rate-limited` */
  async count(principal: string): Promise<void> {
    try {
      await this.#limiter.consume(principal);
    } catch (error) {
      if (error instanceof RateLimiterRes) {
        const retryAfterMs = Math.max(1, error.msBeforeNext);
        throw new ServiceError("rate-limited", `"${principal}" asks too often`, { retryAfterMs });
      }
      throw error;
    }
  }
}
