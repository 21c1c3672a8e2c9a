import { onAbort } from "../runtime/abort-listeners.ts";
import type { LocalCoordinator } from "../local/coordinator.ts";
import type { LatchEngine, LatchRef } from "../driver.ts";
import { WaitTimeoutError } from "../errors.ts";
import {
  checkDuration,
  checkInteger,
  checkOptionNames,
  checkSignal,
  checkText,
  checkTtl,
} from "../option-checks.ts";

/** The count and TTL of a latch. */
export interface LatchOptions {
  /** How many countdowns open the latch, 1 to 10 000. Calls with another count are rejected: `limit-mismatch`. */
  count: number;
  /** The life of the latch from its first call, open or not: 100 to 86 400 000 ms. The first call decides the TTL. */
  ttlMs: number;
}

/** Options of one countdown. */
export interface CountDownOptions {
  /**
   * The caller's own idempotency key, at most 512 bytes. Countdowns with the same key, in any process, count once.
   * @defaultValue none: each call counts
   */
  attemptId?: string | undefined;
}

/** Options of one wait for a latch. */
export interface LatchWaitOptions {
  /**
   * The longest wait, ms. With 0 the call reads the count once, and rejects with `wait-timeout` unless the latch is open.
   * `Infinity` is allowed.
   * @defaultValue 10 000
   */
  waitMs?: number | undefined;
  /** Aborts the wait: the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * A latch that opens after `count` countdowns and stays open until its TTL has expired. The first call binds this object to one latch.
 * After the end of that latch, calls reject with `latch-expired`. A new object starts or joins the next latch.
 */
export interface Latch {
  /**
   * Counts down by one.
   * @returns the remaining count; 0: the latch is open
   * @throws {LockError} `latch-expired`, `kind-mismatch`, or `limit-mismatch` if the latch has another count
   * @throws {EngineError} the engine does not reply within its command budget. With `outcome: "unknown"` the call may have counted.
   * A repeat with the same `attemptId` is safe.
   */
  countDown(options?: CountDownOptions): Promise<number>;
  /**
   * Resolves when the latch is open. The wait continues during transient failures of the engine.
   * @throws {WaitTimeoutError} `waitMs` has passed, and the latch is not open
   * @throws {LockError} `latch-expired`, `kind-mismatch`, or `limit-mismatch` if the latch has another count
   * @throws {EngineError} the engine is unreachable when `waitMs` has passed; at once if the failure is permanent
   */
  wait(options?: LatchWaitOptions): Promise<void>;
}

const maxCount = 10_000;

export function checkLatch(options: LatchOptions, maxTtlMs: number): LatchOptions {
  checkOptionNames(options, ["count", "ttlMs"]);
  return {
    count: checkInteger("count", options.count, 1, maxCount),
    ttlMs: checkTtl("ttlMs", options.ttlMs, maxTtlMs),
  };
}

export function latch(ref: LatchRef, coordinator: LocalCoordinator): Latch {
  const latches = coordinator.driver.latches as LatchEngine; // `capabilities.kinds` includes the latch
  const countDown = async (attemptId: string | undefined): Promise<number> => {
    coordinator.checkKey(ref.key);
    coordinator.assertOpen(ref.key);
    return latches.countDown(ref, attemptId);
  };
  const wait = async (waitMs: number, signal: AbortSignal | undefined): Promise<void> => {
    coordinator.checkKey(ref.key);
    coordinator.assertOpen(ref.key);
    signal?.throwIfAborted();
    const waiting = latches.wait(ref, waitMs === 0 ? null : coordinator.clock.now() + waitMs);
    const ends = [coordinator.closing, ...(signal ? [signal] : [])];
    const stopListening = ends.map((end) => onAbort(end, waiting.cancel.bind(waiting)));
    try {
      const remaining = await waiting.result;
      if (remaining > 0) {
        throw new WaitTimeoutError(ref.key, waitMs, undefined, undefined, remaining);
      }
    } finally {
      stopListening.forEach((stop) => stop());
    }
  };
  return {
    countDown(options = {}) {
      checkOptionNames(options, ["attemptId"]);
      const { attemptId } = options;
      const withAttempt = attemptId === undefined ? undefined : checkText("attemptId", attemptId, 512);
      return countDown(withAttempt);
    },
    wait(options = {}) {
      checkOptionNames(options, ["waitMs", "signal"]);
      const { waitMs = 10_000, signal } = options;
      const checked = signal === undefined ? undefined : checkSignal("signal", signal);
      return wait(checkDuration("waitMs", waitMs, 0), checked);
    },
  };
}
