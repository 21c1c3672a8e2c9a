import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

import { ServiceError } from "./refusal.ts";

/** Bounds how often one principal may ask. What keeps or ends a lease is never refused: that would lose locks. */
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
