import { setTimeout as pause } from "node:timers/promises";

/** What became of a promise. */
export type Ending<T> =
  | { readonly state: "fulfilled"; readonly value: T; readonly afterMs: number }
  | { readonly state: "rejected"; readonly error: unknown; readonly afterMs: number }
  | { readonly state: "pending"; readonly afterMs: number };

/** Waits no longer than that. What the promise does later is nobody's concern, and no unhandled rejection. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<Ending<T>> {
  const begun = performance.now();
  const afterMs = (): number => performance.now() - begun;
  const ended = promise.then(
    (value): Ending<T> => ({ state: "fulfilled", value, afterMs: afterMs() }),
    (error: unknown): Ending<T> => ({ state: "rejected", error, afterMs: afterMs() }),
  );
  const over = new AbortController();
  const late = pause(ms, undefined, { signal: over.signal }).then(
    (): Ending<T> => ({ state: "pending", afterMs: afterMs() }),
    (): Ending<T> => ({ state: "pending", afterMs: afterMs() }),
  );
  const ending = await Promise.race([ended, late]);
  over.abort();
  return ending;
}
