import type { Locks, LockState } from "holdfast";

import { shown } from "../duration.ts";
import type { Voice } from "../output.ts";

const patienceMs = 300;
const refreshEveryMs = 1_000;
const tellEveryMs = 60_000;

/** Tells who holds what we wait for: on a terminal in a line that changes, else once a minute. */
export function tellWaiting(engine: { locks: Locks; owner: string }, key: string, voice: Voice): Disposable {
  const begun = performance.now();
  let isOver = false;
  const tell = async (): Promise<void> => {
    const state = await engine.locks.inspect(key).catch(() => undefined);
    if (!isOver) {
      const text = `waiting for "${key}" for ${shown(performance.now() - begun)}${described(state, engine.owner)}`;
      if (voice.isTerminal) voice.status(`holdfast: ${text}`);
      else voice.say(text);
      plan(voice.isTerminal ? refreshEveryMs : tellEveryMs);
    }
  };
  let timer: NodeJS.Timeout;
  const plan = (ms: number): void => {
    timer = setTimeout(() => void tell(), ms).unref();
  };
  plan(voice.isTerminal ? patienceMs : tellEveryMs);
  return {
    [Symbol.dispose]: () => {
      isOver = true;
      clearTimeout(timer);
      voice.status("");
    },
  };
}

function described(state: LockState | undefined, owner: string): string {
  if (state === undefined) {
    return "; the engine does not answer";
  }
  const [holder] = state.holders;
  const position = state.waiters.find((waiter) => waiter.owner === owner)?.position;
  const reason = holder?.reason === undefined ? "" : ` (${holder.reason})`;
  const by = holder === undefined ? "" : `, held by ${holder.owner}${reason}`;
  return `${by}${position === undefined ? "" : `, position ${position + 1} of ${state.waiterCount}`}`;
}
