import { setTimeout as pause } from "node:timers/promises";

/** The outcome of a promise. */
export type PromiseOutcome<T> =
  | { readonly state: "fulfilled"; readonly value: T; readonly afterMs: number }
  | { readonly state: "rejected"; readonly error: unknown; readonly afterMs: number }
  | { readonly state: "pending"; readonly afterMs: number };

/** Waits at most this time for a promise. A later result is ignored, and a later rejection counts as handled. */
export async function withTimeout<T>(ms: number, promise: Promise<T>): Promise<PromiseOutcome<T>> {
  const startedAt = performance.now();
  const afterMs = (): number => performance.now() - startedAt;
  const ended = promise.then(
    (value): PromiseOutcome<T> => ({ state: "fulfilled", value, afterMs: afterMs() }),
    (error: unknown): PromiseOutcome<T> => ({ state: "rejected", error, afterMs: afterMs() }),
  );
  const controller = new AbortController();
  const timeout = pause(ms, undefined, { signal: controller.signal }).then(
    (): PromiseOutcome<T> => ({ state: "pending", afterMs: afterMs() }),
    (): PromiseOutcome<T> => ({ state: "pending", afterMs: afterMs() }),
  );
  const outcome = await Promise.race([ended, timeout]);
  controller.abort();
  return outcome;
}
