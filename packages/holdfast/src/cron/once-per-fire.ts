import type { OnceOptions } from "../kinds/once.ts";
import type { Lease } from "../lease/lease.ts";
import type { Holder } from "../lock-state.ts";
import type { Locks } from "../locks.ts";
import { checkFunction, checkOnceOptions } from "./check-options.ts";

/** Options of `oncePerFire`: those of `Locks.once`, and two reports. */
export interface OncePerFireOptions extends OnceOptions {
  /** Called instead of the work if the key is held. The holder runs the work of this fire, or ran it less than `keepMs` ago. */
  onSkipped?: ((holder: Holder | undefined) => void) | undefined;
  /**
   * Called with the error of a fire. The fire then does not reject. The error is that of the work, a `LeaseLostError` after a loss, or
   * an `EngineError` or `QuorumError` if the engine does not reply. In the last two cases the work did not run.
   * @defaultValue the fire rejects, and the scheduler handles the rejection like that of any job
   */
  onError?: ((error: unknown) => void) | undefined;
}

/**
 * A job for a scheduler that fires in several processes, such as cron, croner or node-schedule. At each fire `Locks.once` runs the work
 * in at most one process.
 *
 * - The key stays held until `keepMs` after the grant. Processes with later clocks find it held, and skip the fire.
 *
 * - A fire during the work of an earlier fire is skipped, also in the same process.
 *
 * - At a loss `lease.signal` aborts, and another process may run the work. The fire rejects with a `LeaseLostError` after the work.
 *
 * - If the work throws, the key is free at once. A process with a later clock then runs the work again for the same fire.
 *
 * - If the engine does not reply, the work does not run.
 * @param work receives the lease, then the arguments of the scheduler
 * @throws {TypeError | RangeError} invalid key, option or work; at once, not at the first fire
 * @example
 * ```ts
 * cron.schedule("0 3 * * *", oncePerFire(locks, "nightly", { keepMs: 60_000 }, () => cleanUp()));
 * ```
 */
export function oncePerFire<A extends readonly unknown[]>(
  locks: Locks,
  key: string,
  options: OncePerFireOptions,
  work: (lease: Lease, ...fire: A) => unknown,
): (...fire: A) => Promise<void> {
  const {
    onSkipped = ignore,
    onError = rethrow,
    ...once
  } = checkOnceOptions(locks, key, options, ["onSkipped", "onError"]);
  for (const [name, value] of Object.entries({ onSkipped, onError, work })) {
    checkFunction(name, value);
  }
  return async (...fire) => {
    try {
      const result = await locks.once(key, once, (lease) => work(lease, ...fire));
      if (!result.ran) {
        onSkipped(result.holder);
      }
    } catch (error) {
      onError(error);
    }
  };
}

function ignore(): void {
  // a skipped fire is not reported
}

function rethrow(error: unknown): never {
  throw error;
}
