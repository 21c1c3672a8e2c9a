import { checkOptionNames, checkSignal, integerOr, invalidValue } from "../option-checks.ts";
import { systemClock } from "../runtime/clock.ts";
import { systemRandom, type Random } from "../runtime/random.ts";
import { pause } from "../runtime/timeout.ts";

/** `written: false`: the state had another version, so the write had no effect. */
export type WriteResult<T> = { readonly written: true; readonly value: T } | { readonly written: false };

/** An update that counts only if nothing has changed the state since its read. */
export interface OptimisticUpdate<State, T> {
  /** Reads the state with its version. */
  read(): Promise<State>;
  /** Computes the new state and writes it in one step, on the condition that the version is still that of `state`. */
  write(state: State): Promise<WriteResult<T>>;
}

export interface OptimisticOptions {
  /**
   * How many times the update is tried, 1 to 1 000.
   * @defaultValue 10
   */
  readonly attempts?: number | undefined;
  /**
   * The pause after a number of conflicts in a row, ms.
   * @defaultValue random, up to 2 ms after the first conflict, doubled with each up to 100 ms
   */
  readonly backoff?: ((conflicts: number) => number) | undefined;
  /** Ends the retries: the call rejects with the signal's reason. A read or write that has begun is awaited. */
  readonly signal?: AbortSignal | undefined;
}

/** Every try found that the state had changed since its read. The last write had no effect. */
export class OptimisticConflictError extends Error {
  override readonly name = "OptimisticConflictError";
  /** How many times the update was tried. */
  readonly tries: number;
  /** A repeated call may succeed later. */
  readonly retryable = true;

  constructor(tries: number) {
    super(`The update conflicted with others in each of ${tries} tries; raise \`attempts\`, or use a lock`);
    this.tries = tries;
  }
}

/**
 * Updates a state without a lock: reads it, and writes it if its version is unchanged. After a conflict it reads again.
 *
 * No update is lost, if every writer of the state checks and changes the version. A conflict means that another update has
 * succeeded, so some writer always proceeds. One writer may lose each time.
 *
 * An error of `read` or `write` rejects the call. If the connection failed during `write`, the update may have happened.
 * @returns the value of the successful write
 * @throws OptimisticConflictError after `attempts` conflicts
 * @throws TypeError or RangeError for an invalid option
 */
export async function optimistic<State, T>(
  update: OptimisticUpdate<State, T>,
  options: OptimisticOptions = {},
): Promise<T> {
  checkOptionNames(options, ["attempts", "backoff", "signal"]);
  const attempts = integerOr(10, "attempts", options.attempts, [1, 1_000]);
  const backoff = options.backoff ?? ((conflicts) => defaultBackoffMs(systemRandom, conflicts));
  const signal = options.signal && checkSignal("signal", options.signal);
  for (let tries = 1; ; tries += 1) {
    signal?.throwIfAborted();
    const result = await update.write(await update.read());
    if (result.written) {
      return result.value;
    }
    if (tries === attempts) {
      throw new OptimisticConflictError(tries);
    }
    await pause(systemClock, checkPause(backoff(tries)), true, signal);
  }
}

/** Random from 0 on, so that writers that conflicted do not meet again. */
export function defaultBackoffMs(random: Random, conflicts: number): number {
  return random.nextFloat() * Math.min(100, 2 ** Math.min(conflicts, 7));
}

function checkPause(ms: unknown): number {
  if (typeof ms !== "number" || !(ms >= 0 && ms < 2 ** 31)) {
    throw invalidValue("backoff", "a function that returns a number of ms from 0", ms);
  }
  return ms;
}
