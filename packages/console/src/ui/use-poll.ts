import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { ApiError, get } from "../api/client.ts";
import { isPaused } from "../live/live.ts";
import { wait } from "../live/wait.ts";

/** The newest reply to a repeated request. */
export interface Poll<T> {
  readonly data: T | undefined;
  readonly error: ApiError | undefined;
  /** When `data` arrived; 0: not yet. */
  readonly at: number;
  /** Requests again, at once. */
  readonly refresh: () => void;
}

type Params = Readonly<Record<string, string | undefined>>;

/** A request takes at most this part of the time. */
const restFactor = 20;
/** One slow reply does not delay the next request for longer than this many intervals. */
const mostIntervals = 4;

/**
 * Repeats a request while the component is mounted, the page is visible and not paused. After a reply that the path is missing, the
 * requests end.
 */
export function usePoll<T>(path: string, params: Params, intervalMs: number): Poll<T> {
  const name = JSON.stringify([path, params]);
  const [state, refresh] = useMemo(() => newState<T>(), [name]);
  useEffect(() => {
    const stopped = new AbortController();
    let resting = new AbortController();
    refresh.run = () => resting.abort();
    const shown = (): void => resting.abort();
    document.addEventListener("visibilitychange", shown);
    void (async () => {
      let isFirst: boolean = true;
      while (!stopped.signal.aborted) {
        resting = new AbortController();
        const begun = performance.now();
        const isDue: boolean = document.visibilityState === "visible" && (!isPaused.peek() || isFirst);
        if (isDue && !(await ask(state, path, params, stopped.signal))) return;
        isFirst &&= !isDue;
        const took = performance.now() - begun;
        const rest = Math.min(mostIntervals * intervalMs, Math.max(intervalMs, restFactor * took));
        await wait(rest, AbortSignal.any([stopped.signal, resting.signal]));
      }
    })();
    return () => {
      stopped.abort();
      document.removeEventListener("visibilitychange", shown);
    };
  }, [name, intervalMs]);
  return state.value;
}

function newState<T>(): [Signal<Poll<T>>, { run: () => void }] {
  const refresh = { run: (): void => undefined };
  const first: Poll<T> = { data: undefined, error: undefined, at: 0, refresh: () => refresh.run() };
  return [signal(first), refresh];
}

/** @returns whether to ask again */
async function ask<T>(
  state: Signal<Poll<T>>,
  path: string,
  params: Params,
  aborted: AbortSignal,
): Promise<boolean> {
  try {
    const data = await get<T>(path, params, aborted);
    if (!aborted.aborted) state.value = { ...state.value, data, error: undefined, at: Date.now() };
  } catch (error) {
    if (aborted.aborted) return false;
    const known = error instanceof ApiError ? error : new ApiError(0, String(error));
    state.value = { ...state.value, error: known };
    return !known.isMissing && known.status !== 400 && known.status !== 403;
  }
  return true;
}
