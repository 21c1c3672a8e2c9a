import { backoffMs } from "../../runtime/random.ts";
import { pause } from "../../runtime/timeout.ts";
import { isRetryable, type StoreCalls } from "./store-calls.ts";

/** Requests that no caller waits for: the end of grants, and the removal of grants and queue entries of abandoned requests. */
export class CleanUps {
  readonly #calls: StoreCalls;
  readonly #cleaned: (key: string) => void;
  readonly #pending = new Set<Promise<void>>();
  readonly #closed = new AbortController();

  /** @param cleaned called when the grant or queue entry of a key is removed */
  constructor(calls: StoreCalls, cleaned: (key: string) => void) {
    this.#calls = calls;
    this.#cleaned = cleaned;
  }

  /**
   * Removes a token's grant and queue entry.
   * @param until the end of the grant, on the scale of `clock.now()`
   * @param mayBeExecuted a request of the token failed, and the engine may still execute the request. The grant of such a request is
   * removed after `commandTimeoutMs`. A later grant ends with its TTL.
   */
  remove({ key, token }: { key: string; token: string }, until: number, mayBeExecuted: boolean): void {
    const request = (): Promise<boolean> => this.#calls.store.release(key, token);
    this.#start(async () => {
      await this.#untilConfirmed(key, until, request);
      if (mayBeExecuted) {
        await this.#pause(this.#calls.commandTimeoutMs);
        if (!this.#closed.signal.aborted) {
          await this.#untilConfirmed(key, until, request);
        }
      }
    });
  }

  /** Repeats a request until the store confirms it, or until the grant has expired. */
  repeat(key: string, until: number, request: () => Promise<unknown>): void {
    this.#start(() => this.#untilConfirmed(key, until, request));
  }

  /** Ends the repeats. Resolves when no request is under way. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#pending);
  }

  #start(run: () => Promise<void>): void {
    const work = run().finally(() => this.#pending.delete(work));
    this.#pending.add(work);
  }

  async #untilConfirmed(key: string, until: number, request: () => Promise<unknown>): Promise<void> {
    const { clock, random } = this.#calls;
    for (let failures = 0; ; failures += 1) {
      try {
        await this.#calls.once(key, request);
        this.#cleaned(key);
        return;
      } catch (error) {
        if (!isRetryable(error) || this.#closed.signal.aborted || clock.now() >= until) {
          return;
        }
        await this.#pause(backoffMs(random, failures));
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return pause(this.#calls.clock, ms, false, this.#closed.signal);
  }
}
