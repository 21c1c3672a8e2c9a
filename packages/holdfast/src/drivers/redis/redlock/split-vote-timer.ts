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
 * When a bid that has some votes and no majority, for which others may be waiting, or that has asked for the votes of who came
 * later, asks all nodes again: messages may be lost. Ever later while that lasts.
 */
export class SplitVoteTimer {
  /** On the scale of `clock.now()`; Infinity: it is not split. */
  retryAt: number = Infinity;
  readonly #host: SplitVoteHost;
  readonly #ttlMs: number;
  #retryCount = 0;

  constructor(host: SplitVoteHost, ttlMs: number) {
    this.#host = host;
    this.#ttlMs = ttlMs;
  }

  /** @param isSplit whether there are votes, or may be, of a bid that is not elected */
  observe(isSplit: boolean): void {
    if (!isSplit) {
      this.#retryCount = 0;
      this.retryAt = Infinity;
    } else if (this.retryAt === Infinity) {
      const { clock, random, claimMs } = this.#host;
      const delayMs = Math.min(
        maxDelayMs,
        minDelayMs * 2 ** Math.min(this.#retryCount, 3),
        Math.min(this.#ttlMs, claimMs) / 3, // before the first of them is over, also of those that we were not told of
      );
      this.retryAt = clock.now() + jittered(random, delayMs, 0.5);
    }
  }

  /** Its moment has come. */
  retried(): void {
    this.retryAt = Infinity;
    this.#retryCount += 1;
  }

  /** Every other time that it asks again it had better stop asking for a while, where nobody can ask for its votes. */
  get isPauseDue(): boolean {
    return this.#retryCount % 2 === 0;
  }

  /** How long it asks for no votes once it has given back those that no rival can ask for. */
  get pauseMs(): number {
    return backoffMs(this.#host.random, Math.min(this.#retryCount, 3));
  }
}
