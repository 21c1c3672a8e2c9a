import { kindMismatch } from "../../errors.ts";
import { systemClock, type Timer } from "../../runtime/clock.ts";
import { claimSemaphoreKeyScript } from "./scripts.generated.ts";
import type { PlainCommands } from "./clients.ts";

/** How long the guard outlives its last holder, ms. */
const guardTtlMs = 60_000;
const renewalMs = 20_000;
const guardValue = "holdfast";

/**
 * Keeps redis-semaphore out of a semaphore that Holdfast uses. redis-semaphore stores permits in a sorted set under `semaphore:<key>`,
 * in another layout. The guard is a string under that key. So a key in use by redis-semaphore refuses the guard. While the guard
 * exists, Redis refuses the commands of redis-semaphore with `WRONGTYPE`.
 */
export class SemaphoreKeyGuard {
  readonly key: string;
  readonly #client: PlainCommands;
  #claimedAt = -Infinity;
  #renewal: Timer;

  constructor(client: PlainCommands, key: string) {
    this.#client = client;
    this.key = key;
  }

  /**
   * Writes the guard, or extends it.
   * @throws {LockError} `kind-mismatch`: the key has other data
   */
  async claim(): Promise<void> {
    const at = systemClock.now();
    const { source } = claimSemaphoreKeyScript;
    const present = String(await this.#client.eval(source, 1, this.key, guardValue, String(guardTtlMs)));
    if (present !== "none") {
      const what = present === "zset" ? "a semaphore of redis-semaphore" : `a ${present} of another program`;
      throw kindMismatch(this.key, what);
    }
    this.#claimedAt = at;
  }

  /** Claims again if the wait for the permits was long. */
  async confirm(): Promise<void> {
    if (systemClock.now() - this.#claimedAt > renewalMs) {
      await this.claim();
    }
  }

  /** Claims repeatedly, until {@link stopRenewals}, or until `isNeeded` returns false. */
  startRenewals(isNeeded: () => boolean): void {
    this.#renewal ??= systemClock.setTimer(() => {
      this.#renewal = undefined;
      if (isNeeded()) {
        this.claim().catch(() => undefined); // the next claim retries, within the TTL of the guard
        this.startRenewals(isNeeded);
      }
    }, renewalMs);
  }

  stopRenewals(): void {
    systemClock.clearTimer(this.#renewal);
    this.#renewal = undefined;
  }
}
