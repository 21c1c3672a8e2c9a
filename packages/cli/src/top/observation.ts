import type { LockState } from "holdfast";

import { isStale } from "../inspect/list.ts";

/** Who held a lock, and when, as far as we saw it; in milliseconds on one clock. */
export interface HoldSpan {
  readonly owner: string;
  readonly token: string;
  readonly from: number;
  to: number;
}

/** A lock as it was seen over time. */
export interface LockHistory {
  readonly state: LockState;
  /** Since when its holder has been seen, ms. */
  readonly heldMs: number;
  /** Nobody renews it, or nobody will free it. */
  readonly isStale: boolean;
  readonly history: readonly HoldSpan[];
}

const maxSpans = 50;
/** A lease is renewed when a third of its TTL has passed: with less than half of it left something is wrong. */
const renewedFraction = 0.5;

/** What one look at the engine does not show: how long somebody holds a lock, and whether he renews it. */
export class Observation {
  readonly #histories = new Map<string, HoldSpan[]>();
  readonly #maxRemainingMs = new Map<string, { token: string; ms: number }>();

  /** Takes in what was seen at a moment. */
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
    const heldMs = state.holders.length > 0 && span !== undefined ? now - span.from : 0;
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
