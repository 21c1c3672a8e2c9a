import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

import type { Engine } from "./engine.ts";
import type { ResolvedService } from "./options.ts";
import { ServiceError } from "./refusal.ts";

/** The limits of one principal at this instance. */
export interface Limits {
  readonly waits: number;
  /** Of one key. null: no limit. */
  readonly waitsOfKey: number | null;
  /** The held keys. null: no limit. */
  readonly leases: number | null;
  readonly streams: number;
  readonly requestsPerSecond: number | null;
}

/** Engines on which a waiter costs next to nothing, because it does not poll. */
const lightEngines: ReadonlySet<string> = new Set(["redis", "redlock", "memory", "http"]);

/** Without authentication all clients of the machine are one principal, which has no limits of its own. */
export function limitsOf(options: ResolvedService, { driver }: Engine): Limits {
  const isLight = lightEngines.has(driver.capabilities.engine ?? "");
  const isLimited = options.auth !== undefined;
  return {
    waits: options.maxWaitsOfOne ?? (isLight || !isLimited ? 20_000 : 1_000),
    waitsOfKey: isLimited ? options.maxWaitsOfKey : null,
    leases: isLimited ? options.maxLeasesOfOne : null,
    streams: options.maxStreamsOfOne,
    requestsPerSecond: options.requestsPerSecond ?? null,
  };
}

/**
 * Limits the request rate of each principal. Renewals and releases that have an effect are not counted, because a refused renewal loses a
 * lock, and a refused release keeps one. Renewals and releases in vain have a limit for themselves: of an ended or unknown lease, or of a
 * lease that was renewed a moment ago.
 */
export class RateLimit {
  readonly #requests: RateLimiterMemory;
  readonly #inVain: RateLimiterMemory;

  constructor(perSecond: number) {
    this.#requests = new RateLimiterMemory({ points: perSecond, duration: 1 });
    this.#inVain = new RateLimiterMemory({ points: perSecond, duration: 1 });
  }

  /** @throws {ServiceError} `rate-limited` */
  async count(quota: string): Promise<void> {
    await consume(this.#requests, quota);
  }

  /**
   * Counts a renewal that is known to be in vain.
   * @throws {ServiceError} `rate-limited`
   */
  async countEarly(quota: string): Promise<void> {
    await consume(this.#inVain, quota);
  }

  /** Notes a renewal or release that was in vain. */
  async countInVain(quota: string): Promise<void> {
    await this.#inVain.penalty(quota);
  }

  /**
   * Admits a renewal or release that may be in vain, unless too many of this second were.
   * @throws {ServiceError} `rate-limited`
   */
  async admitDoubtful(quota: string): Promise<void> {
    const counted = await this.#inVain.get(quota);
    if (counted !== null && counted.remainingPoints <= 0) {
      throw refusal(quota, counted);
    }
  }
}

async function consume(limiter: RateLimiterMemory, quota: string): Promise<void> {
  try {
    await limiter.consume(quota);
  } catch (error) {
    throw error instanceof RateLimiterRes ? refusal(quota, error) : error;
  }
}

function refusal(quota: string, { msBeforeNext }: RateLimiterRes): ServiceError {
  const retryAfterMs = Math.max(1, msBeforeNext);
  return new ServiceError("rate-limited", `"${quota}" asks too often`, { retryAfterMs });
}
