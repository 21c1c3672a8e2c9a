import type { Clock } from "../../../runtime/clock.ts";
import { backoffMs, jittered, type Random } from "../../../runtime/random.ts";

const shortestMs = 250;
const longestMs = 2_000;

interface SplitHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly claimMs: number;
}

/**
 * When a bid that has some votes and no majority, for which others may be waiting, or that has asked for the votes of who came
 * later, asks all nodes again: messages may be lost. Ever later while that lasts.
 */
export class Split {
  /** On the scale of `clock.now()`; Infinity: it is not split. */
  askAgainAt: number = Infinity;
  readonly #host: SplitHost;
  readonly #ttlMs: number;
  #timesAsked = 0;

  constructor(host: SplitHost, ttlMs: number) {
    this.#host = host;
    this.#ttlMs = ttlMs;
  }

  /** @param isSplit whether there are votes, or may be, of a bid that is not elected */
  observe(isSplit: boolean): void {
    if (!isSplit) {
      this.#timesAsked = 0;
      this.askAgainAt = Infinity;
    } else if (this.askAgainAt === Infinity) {
      const { clock, random, claimMs } = this.#host;
      const delayMs = Math.min(
        longestMs,
        shortestMs * 2 ** Math.min(this.#timesAsked, 3),
        Math.min(this.#ttlMs, claimMs) / 3, // before the first of them is over, also of those that we were not told of
      );
      this.askAgainAt = clock.now() + jittered(random, delayMs, 0.5);
    }
  }

  /** Its moment has come. */
  askAgain(): void {
    this.askAgainAt = Infinity;
    this.#timesAsked += 1;
  }

  /** Every other time that it asks again it had better stop asking for a while, where nobody can ask for its votes. */
  get isPauseDue(): boolean {
    return this.#timesAsked % 2 === 0;
  }

  /** How long it asks for no votes once it has given back those that no rival can ask for. */
  get pauseMs(): number {
    return backoffMs(this.#host.random, Math.min(this.#timesAsked, 3));
  }
}
