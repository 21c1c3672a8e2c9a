import type { Clock } from "../../../runtime/clock.ts";
import { backoffMs, jittered, type Random } from "../../../runtime/random.ts";

const minDelayMs = 250;
const maxDelayMs = 2_000;

interface SplitVoteHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly claimMs: number;
}

/**
 * After a split vote, decides when the attempt sends its requests to all nodes again, because the notifications that resolve the
 * split can be lost. The delay doubles with each retry.
 */
export class SplitVoteTimer {
  /** On the scale of `clock.now()`; Infinity: the vote is not split. */
  retryAt: number = Infinity;
  readonly #host: SplitVoteHost;
  readonly #ttlMs: number;
  #retryCount = 0;

  constructor(host: SplitVoteHost, ttlMs: number) {
    this.#host = host;
    this.#ttlMs = ttlMs;
  }

  /** @param isSplit whether an attempt without a majority has votes, or may have them */
  observe(isSplit: boolean): void {
    if (!isSplit) {
      this.#retryCount = 0;
      this.retryAt = Infinity;
    } else if (this.retryAt === Infinity) {
      const { clock, random, claimMs } = this.#host;
      const delayMs = Math.min(
        maxDelayMs,
        minDelayMs * 2 ** Math.min(this.#retryCount, 3),
        Math.min(this.#ttlMs, claimMs) / 3, // before the first vote expires, known or unknown
      );
      this.retryAt = clock.now() + jittered(random, delayMs, 0.5);
    }
  }

  /** The requests were sent again. */
  retried(): void {
    this.retryAt = Infinity;
    this.#retryCount += 1;
  }

  /** At every second retry, an attempt whose votes no node can request back should pause. */
  get isPauseDue(): boolean {
    return this.#retryCount % 2 === 0;
  }

  /** How long the request has no attempt after it has returned votes that no node can request back. */
  get pauseMs(): number {
    return backoffMs(this.#host.random, Math.min(this.#retryCount, 3));
  }
}
