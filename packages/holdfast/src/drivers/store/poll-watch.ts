import { exists, type LockEvent, type LockState } from "../../lock-state.ts";
import { jittered } from "../../runtime/random.ts";
import { pause } from "../../runtime/timeout.ts";
import type { ListQuery } from "../../driver.ts";
import type { LeaseStore } from "./lease-store.ts";
import { isTransient, type StoreCalls } from "./store-calls.ts";

const pollMs = 400;
const pageSize = 200;

/** Watches by reading the states again and again. Changes between two reads become one event. Ends when the signal aborts. */
export async function* watchByPolls(
  calls: StoreCalls,
  target: string | { readonly prefix: string },
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  const known = new Map<string, string>();
  for (let isFirst = true; !signal.aborted;) {
    try {
      const states = await statesOf(calls, target, known);
      for (const state of states) {
        const event = changeOf(state, known, isFirst && (exists(state) || state.key === target));
        if (event && !signal.aborted) {
          yield event;
        }
      }
      isFirst = false;
    } catch (error) {
      if (!isTransient(error)) {
        throw error;
      }
    }
    await pause(calls.clock, jittered(calls.random, pollMs, 0.25), true, signal);
  }
}

/** The states of the watched locks, and of those that were held at the last read. */
async function statesOf(
  calls: StoreCalls,
  target: string | { readonly prefix: string },
  known: ReadonlyMap<string, string>,
): Promise<LockState[]> {
  const { store } = calls;
  if (typeof target === "string") {
    return [await calls.once(target, () => store.inspect(target))];
  }
  const states: LockState[] = [];
  let cursor: string | null = null;
  do {
    const query: ListQuery = { prefix: target.prefix, cursor, limit: pageSize };
    const page: Awaited<ReturnType<LeaseStore["list"]>> = await calls.once(undefined, () =>
      store.list(query),
    );
    states.push(...page.locks);
    cursor = page.cursor;
  } while (cursor !== null);
  const listed = new Set(states.map(({ key }) => key));
  for (const key of known.keys()) {
    if (!listed.has(key)) {
      states.push(await calls.once(key, () => store.inspect(key)));
    }
  }
  return states;
}

function changeOf(state: LockState, known: Map<string, string>, isSnapshot: boolean): LockEvent | undefined {
  const { key } = state;
  const before = known.get(key);
  const now = fingerprintOf(state);
  if (exists(state)) {
    known.set(key, now);
  } else {
    known.delete(key);
  }
  if (isSnapshot) {
    return { type: "snapshot", key, state };
  } else if (exists(state)) {
    return now === before ? undefined : { type: "changed", key, state };
  }
  return before === undefined ? undefined : { type: "gone", key, state };
}

const durations: ReadonlySet<string> = new Set(["remainingMs", "heldMs", "waitedMs", "oldestWaitMs"]);

/** The state without its durations, which change without an event. */
function fingerprintOf(state: LockState): string {
  return JSON.stringify(state, (name, value: unknown) => (durations.has(name) ? undefined : value));
}
