import { EngineError, isLockError, LockError } from "../../errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { backoffMs, type Random } from "../../runtime/random.ts";
import { pause, withTimeout } from "../../runtime/timeout.ts";
import type { LeaseStore } from "./lease-store.ts";

export interface StoreSettings {
  readonly clock: Clock;
  readonly random: Random;
  /** How long a reply may take, ms. */
  readonly commandTimeoutMs: number;
  /**
   * How much longer than the validity of a lease its grant is stored, ms. A server whose clock is ahead by this time ends no grant before
   * its lease.
   */
  readonly graceMs?: number;
}

/** Sends requests to a store, within `commandTimeoutMs` each, and turns the errors of clients into those of the library. */
export class StoreCalls {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: LeaseStore;
  readonly commandTimeoutMs: number;
  readonly graceMs: number;
  readonly #recovered: () => void;
  readonly #underWay = new Set<Promise<unknown>>();
  #hasFailed = false;

  /** @param recovered called at the first reply after a failure */
  constructor(store: LeaseStore, settings: StoreSettings, recovered: () => void) {
    this.store = store;
    this.clock = settings.clock;
    this.random = settings.random;
    this.commandTimeoutMs = settings.commandTimeoutMs;
    this.graceMs = settings.graceMs ?? 0;
    this.#recovered = recovered;
  }

  /**
   * Sends one request. Rejects with a `LockError`, at the latest after `commandTimeoutMs`.
   * @param limitMs a shorter time limit
   * @param earlier the failure of the request that this one repeats, which explains a timeout better than the time does
   */
  async once<T>(
    key: string | undefined,
    request: () => Promise<T>,
    limitMs: number = this.commandTimeoutMs,
    earlier?: Error,
  ): Promise<T> {
    const started = this.clock.now();
    const pending = this.#track(request());
    try {
      const reply = await withTimeout(this.clock, Math.min(limitMs, this.commandTimeoutMs), pending);
      if (reply) {
        this.#replied();
        return reply.value;
      }
    } catch (error) {
      throw this.#failed(error, key);
    }
    throw this.#failed(this.#timedOut(key, Math.round(this.clock.now() - started), earlier), key);
  }

  /**
   * Repeats a request after transient failures, for `commandTimeoutMs` in total. A repeat must have the same effect as one request.
   * @param repeating called before each repeat, with the failure of the request before
   */
  async repeated<T>(
    key: string | undefined,
    request: () => Promise<T>,
    repeating?: (failure: unknown) => void,
  ): Promise<T> {
    const end = this.clock.now() + this.commandTimeoutMs;
    let earlier: Error | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.once(key, request, Math.max(1, end - this.clock.now()), earlier);
      } catch (error) {
        earlier = error as Error;
        const delayMs = backoffMs(this.random, failures);
        if (!isRetryable(error) || this.clock.now() + delayMs >= end) {
          throw error;
        }
        await pause(this.clock, delayMs);
        repeating?.(error);
      }
    }
  }

  /** Resolves when all requests have settled, or after `commandTimeoutMs`. */
  async drain(): Promise<void> {
    await withTimeout(this.clock, this.commandTimeoutMs, Promise.allSettled(this.#underWay));
  }

  /** Whether the engine may have executed the request that failed with this error, or may execute it later. */
  hasUnknownOutcome(error: unknown): boolean {
    return !isLockError(error) && this.store.failureOf(error).outcome === "unknown";
  }

  #track<T>(request: Promise<T>): Promise<{ value: T }> {
    const pending = request.then((value) => ({ value }));
    this.#underWay.add(pending);
    const settled = (): boolean => this.#underWay.delete(pending);
    pending.then(settled, settled); // after the time limit the driver no longer waits for the request
    return pending;
  }

  #timedOut(key: string | undefined, waitedMs: number, earlier: Error | undefined): EngineError {
    const cause = this.store.connectionFailure?.() ?? earlier;
    const message = cause?.message ?? `The engine did not reply within ${waitedMs} ms`;
    return new EngineError(message, { key, outcome: "unknown", retryable: true, cause });
  }

  #replied(): void {
    if (this.#hasFailed) {
      this.#hasFailed = false;
      this.#recovered();
    }
  }

  #failed(error: unknown, key: string | undefined): LockError {
    const failure = isLockError(error) ? error : this.#errorOf(error, key);
    this.#hasFailed ||= failure.code === "engine-unavailable";
    return failure;
  }

  #errorOf(error: unknown, key: string | undefined): LockError {
    const { message, outcome, retryable } = this.store.failureOf(error);
    return new EngineError(message, { key, outcome, retryable, cause: error });
  }
}

/** Whether a repeat of the request may succeed. */
export function isRetryable(error: unknown): boolean {
  return isLockError(error) && error.retryable;
}
