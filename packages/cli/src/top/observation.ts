import { longHoldOf } from "@holdfast/console/long-hold";
import { isStaleState, stateOf, type StateWord } from "@holdfast/console/states";
import type { LockState } from "holdfast";

/** One observed hold of a lock, from first to last sight, in milliseconds on one clock. */
export interface HoldSpan {
  readonly owner: string;
  readonly token: string;
  readonly from: number;
  to: number;
}

/** A lock with its observed history. */
export interface LockHistory {
  readonly state: LockState;
  /** How long the present grant has lasted, ms; if the engine does not know, since the first snapshot with it. */
  readonly heldMs: number;
  /** The state in the words of the console. */
  readonly word: StateWord;
  /** The lock is not renewed, or may never be released. */
  readonly isStale: boolean;
  readonly history: readonly HoldSpan[];
}

const maxSpans = 50;

/** Derives from several snapshots how long a lock is held, and whether it is renewed. */
export class Observation {
  readonly #histories = new Map<string, HoldSpan[]>();
  readonly #maxRemainingMs = new Map<string, { token: string; ms: number }>();

  /** Adds a snapshot. */
  record(states: readonly LockState[], now: number): LockHistory[] {
    const keys = new Set(states.map(({ key }) => key));
    for (const key of this.#maxRemainingMs.keys()) {
      if (!keys.has(key)) this.#maxRemainingMs.delete(key);
    }
    return states.map((state) => this.#observed(state, now));
  }

  #observed(state: LockState, now: number): LockHistory {
    const history = this.#historyOf(state, now);
    const span = history.at(-1);
    const observedMs = state.holders.length > 0 && span !== undefined ? now - span.from : 0;
    const heldMs = state.holders[0]?.heldMs ?? observedMs;
    const word = wordOf(state, heldMs, this.#ttlOf(state));
    return { state, heldMs, history, word, isStale: isStaleState(word) };
  }

  #historyOf({ key, holders: [holder] }: LockState, now: number): readonly HoldSpan[] {
    const history = this.#histories.get(key) ?? [];
    this.#histories.set(key, history);
    const token = String(holder?.fencingToken ?? holder?.owner ?? "");
    const last = history.at(-1);
    if (holder !== undefined && last?.token === token) {
      last.to = now;
    } else if (holder !== undefined) {
      history.push({ owner: holder.owner, token, from: now, to: now });
      if (history.length > maxSpans) history.shift();
    }
    return history;
  }

  /** The longest remaining time of the present grant that was seen: a lower bound of its TTL. */
  #ttlOf({ key, holders: [holder], remainingMs }: LockState): number | undefined {
    if (holder === undefined || remainingMs === null) {
      return undefined;
    }
    const token = String(holder.fencingToken);
    const most = this.#maxRemainingMs.get(key);
    if (most?.token === token && remainingMs <= most.ms) {
      return most.ms;
    }
    this.#maxRemainingMs.set(key, { token, ms: remainingMs });
    return remainingMs;
  }
}

/** Without a history of earlier holds, the TTL decides which hold is long. */
function wordOf(state: LockState, heldMs: number, ttlMs: number | undefined): StateWord {
  const word = stateOf(state, ttlMs);
  const { afterMs } = longHoldOf(ttlMs ?? 0, undefined, state.waiterCount > 0);
  return word === "held" && heldMs > afterMs ? "held long" : word;
}
