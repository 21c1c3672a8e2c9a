import type { Timer } from "../../clock.ts";
import type { Driver } from "../../driver.ts";
import { isThere, lockState, type LockEvent, type LockState } from "../../state.ts";

const intervalMs = 500;

/**
 * Watches by asking twice a second: Redis tells nobody of its changes unless it is configured to. A slow reader is told the
 * newest state, once. Ends when the signal aborts; rejects where the engine fails.
 */
export async function* watchByAsking(
  driver: Driver,
  target: string | { readonly prefix: string },
  signal: AbortSignal,
): AsyncGenerator<LockEvent, void, undefined> {
  let known: ReadonlyMap<string, LockState> | undefined;
  while (!signal.aborted) {
    const present = await look(driver, target);
    for (const event of changes(known, present)) {
      if (signal.aborted) {
        return;
      }
      yield event;
    }
    known = present;
    await pause(driver, signal);
  }
}

async function look(
  driver: Driver,
  target: string | { readonly prefix: string },
): Promise<Map<string, LockState>> {
  if (typeof target === "string") {
    return new Map([[target, await driver.inspect(target)]]);
  }
  const states = new Map<string, LockState>();
  let cursor: string | null = null;
  do {
    const page: { locks: LockState[]; cursor: string | null } = await driver.list({
      prefix: target.prefix,
      cursor,
      limit: 1000,
    });
    for (const state of page.locks) {
      states.set(state.key, state);
    }
    cursor = page.cursor;
  } while (cursor !== null);
  return states;
}

function* changes(
  known: ReadonlyMap<string, LockState> | undefined,
  present: ReadonlyMap<string, LockState>,
): Generator<LockEvent> {
  for (const [key, state] of present) {
    const before = known?.get(key);
    if (!known) {
      yield { type: "snapshot", key, state };
    } else if (!before || fingerprintOf(before) !== fingerprintOf(state)) {
      const isGone = before !== undefined && isThere(before) && !isThere(state);
      yield { type: isGone ? "gone" : "changed", key, state };
    }
  }
  for (const [key, state] of known ?? []) {
    if (!present.has(key)) {
      const { left: _, ...rest } = state;
      yield { type: "gone", key, state: lockState({ ...rest, holders: [], remainingMs: null }) };
    }
  }
}

/** Two states are the same but for the time that is left. */
function fingerprintOf(state: LockState): string {
  const { holders, left, waiters, waiterCount, fencingToken } = state;
  const owners = holders.map(({ owner, reason, labels, fencingToken: number }) => [
    owner,
    reason,
    labels,
    String(number),
  ]);
  return JSON.stringify([owners, left, waiters, waiterCount, String(fencingToken)]);
}

async function pause(driver: Driver, signal: AbortSignal): Promise<void> {
  let timer: Timer;
  let onAbort: (() => void) | undefined;
  await new Promise<void>((resolve) => {
    onAbort = resolve;
    timer = driver.clock.setTimer(resolve, intervalMs, true);
    signal.addEventListener("abort", onAbort);
  });
  driver.clock.clearTimer(timer);
  if (onAbort) {
    signal.removeEventListener("abort", onAbort);
  }
}
