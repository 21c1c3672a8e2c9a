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

export interface LatchOptions {
  /** How many attempts open it, 1 to 10 000. All who use the key have to name the same. */
  count: number;
  /** How long there is this latch, open or not, from its first use on: 100 to 86 400 000 ms. The first who uses it decides. */
  ttlMs: number;
}

export interface CountDownOptions {
  /**
   * The caller's own idempotency key: whoever counts down with it, here or in another process, it counts once.
   * @defaultValue each call counts
   */
  attemptId?: string | undefined;
}

export interface LatchWaitOptions {
  /**
   * How long to wait, ms; 0: look once, then `wait-timeout`; `Infinity` is allowed.
   * @defaultValue 10 000
   */
  waitMs?: number | undefined;
  /** Ends the waiting: rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/**
 * Opens when `count` attempts have counted down, and stays open until its TTL is over. This object stays with the latch that it met at
 * its first call: when that is over its calls reject `latch-expired`, and another object may begin the next one.
 */
export interface Latch {
  /**
   * @returns what is left: 0, it is open
   * @throws {LockError} `latch-expired`; `limit-mismatch` where it has another count; `kind-mismatch`
   * @throws {EngineError} when the engine does not answer within its command budget; with `outcome: "unknown"` it may have counted, and
   * only a repeat with the same `attemptId` makes sure
   */
  countDown(options?: CountDownOptions): Promise<number>;
  /**
   * Resolves when it is open, through transient failures of the engine.
   * @throws {WaitTimeoutError} when `waitMs` passes before
   * @throws {LockError} `latch-expired`; `limit-mismatch`; `kind-mismatch`
   * @throws {EngineError} when the engine cannot be reached until `waitMs` has passed; at once where that cannot pass by itself
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
  const latches = coordinator.driver.latches as LatchEngine; // its kinds say that it has them
  const countDown = async (attemptId: string | undefined): Promise<number> => {
    coordinator.assertOpen(ref.key);
    return latches.countDown(ref, attemptId);
  };
  const wait = async (waitMs: number, signal: AbortSignal | undefined): Promise<void> => {
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
