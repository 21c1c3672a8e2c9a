import type { LockState } from "holdfast";

import { isStale } from "../inspect/list.ts";

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
  /** The lock is not renewed, or may never be released. */
  readonly isStale: boolean;
  readonly history: readonly HoldSpan[];
}

const maxSpans = 50;
/** Healthy clients renew after a third of the TTL. A lease with less than this part of its TTL is stale. */
const renewedFraction = 0.5;

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
    return { state, heldMs, history, isStale: isStale(state) || this.#isNotRenewed(state) };
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

  #isNotRenewed({ key, holders: [holder], remainingMs }: LockState): boolean {
    if (holder === undefined || remainingMs === null) {
      return false;
    }
    const token = String(holder.fencingToken);
    const most = this.#maxRemainingMs.get(key);
    if (most?.token !== token || remainingMs > most.ms) {
      this.#maxRemainingMs.set(key, { token, ms: remainingMs });
      return false;
    }
    return remainingMs < most.ms * renewedFraction;
  }
}
