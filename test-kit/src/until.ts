import { setTimeout as pause } from "node:timers/promises";

import { eventLimitMs } from "./time-limits.ts";

/**
 * Polls until the condition holds, for conditions without an event. The limit is generous for slow machines and measures nothing.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  description: string,
  withinMs: number = eventLimitMs,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error(`not within ${withinMs} ms: ${description}`);
    }
    await pause(5);
  }
}

/** Resolves when the signal aborts, with the moment on the scale of `performance.now()`. */
export function abortOf(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(performance.now());
      return;
    }
    signal.addEventListener(
      "abort",
      () => {
        resolve(performance.now());
      },
      { once: true },
    );
  });
}

/** The error that a promise is rejected with, and how long that took. */
export async function rejection(promise: Promise<unknown>): Promise<{ error: unknown; afterMs: number }> {
  const begun = performance.now();
  try {
    const value = await promise;
    throw new Error(`expected a rejection, got ${String(value)}`);
  } catch (error) {
    return { error, afterMs: performance.now() - begun };
  }
}

/** Blocks the event loop. */
export function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    // busy
  }
}
