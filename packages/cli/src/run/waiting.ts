import type { Locks, LockState } from "holdfast";

import { formatDuration } from "../duration.ts";
import type { Output } from "../output.ts";
import { byHolder } from "./held.ts";

const firstReportMs = 300;
const refreshEveryMs = 1_000;
const reportEveryMs = 60_000;

/** Reports the holder of the requested lock. A terminal gets a status line, other outputs one line per minute. */
export function reportWaiting(
  engine: { locks: Locks; owner: string },
  key: string,
  output: Output,
): Disposable {
  const startedAt = performance.now();
  let isDone = false;
  const report = async (): Promise<void> => {
    const state = await engine.locks.inspect(key).catch(() => undefined);
    if (!isDone) {
      const text = `waiting for "${key}" for ${formatDuration(performance.now() - startedAt)}${describeState(state, engine.owner)}`;
      if (output.isTerminal) output.status(`holdfast: ${text}`);
      else output.info(text);
      plan(output.isTerminal ? refreshEveryMs : reportEveryMs);
    }
  };
  let timer: NodeJS.Timeout;
  const plan = (ms: number): void => {
    timer = setTimeout(() => void report(), ms).unref();
  };
  plan(output.isTerminal ? firstReportMs : reportEveryMs);
  return {
    [Symbol.dispose]: () => {
      isDone = true;
      clearTimeout(timer);
      output.status("");
    },
  };
}

function describeState(state: LockState | undefined, owner: string): string {
  if (state === undefined) {
    return "; the engine does not answer";
  }
  const [holder] = state.holders;
  const position = state.waiters.find((waiter) => waiter.owner === owner)?.position;
  const by = holder === undefined ? "" : `, held${byHolder(holder)}`;
  return `${by}${position === undefined ? "" : `, position ${position + 1} of ${state.waiterCount}`}`;
}
