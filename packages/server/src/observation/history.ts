import type { Holder } from "holdfast";

import { quantile } from "./quantile.ts";

/** One hold of a key, from its grant to its end. */
export interface Hold {
  readonly key: string;
  readonly owner: string;
  readonly fencingToken?: string;
  /** Milliseconds since 1970, by the clock of this machine, like `until`. A grant of unknown age counts from its first sight on. */
  readonly since: number;
  /** Null: the hold lasts. */
  readonly until: number | null;
  /** `unknown`: released or expired. */
  readonly end?: "released" | "expired" | "broken" | "unknown";
  readonly reason?: string;
}

/** How long the released holds of one key lasted. */
export interface HoldTimes {
  readonly key: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/** Fewer holds say nothing about the next one. */
const leastHolds = 5;
const maxEnds = 1_000;
const maxEndsOfKey = 50;
const maxLosses = 1_000;
const hourMs = 3_600_000;

/** The last ends of holds, at most 1 000, and at most 50 of one key. The oldest go first. */
export class HoldHistory {
  readonly #ends: Hold[] = [];
  readonly #counts = new Map<string, number>();
  /** The last holds that expired, apart from the ends, which may be many. */
  readonly #losses: { readonly key: string; readonly at: number }[] = [];

  add(hold: Hold): void {
    const count = this.#counts.get(hold.key) ?? 0;
    if (count >= maxEndsOfKey) {
      this.#remove(this.#ends.findIndex(({ key }) => key === hold.key));
    } else if (this.#ends.length >= maxEnds) {
      this.#remove(0);
    }
    this.#ends.push(hold);
    if (hold.end === "expired") {
      this.#losses.push({ key: hold.key, at: hold.until ?? hold.since });
      this.#losses.splice(0, this.#losses.length - maxLosses);
    }
    this.#counts.set(hold.key, (this.#counts.get(hold.key) ?? 0) + 1);
  }

  /** The end of this hold was a break, which became known after the end. @returns false: the history has no such end */
  wasBroken(key: string, fencingToken: string): boolean {
    const index = this.#ends.findLastIndex((hold) => hold.key === key && hold.fencingToken === fencingToken);
    const hold = this.#ends[index];
    if (!hold) {
      return false;
    }
    this.#ends[index] = { ...hold, end: "broken" };
    const loss = this.#losses.findIndex((one) => one.key === key && one.at === hold.until);
    if (hold.end === "expired" && loss >= 0) {
      this.#losses.splice(loss, 1);
    }
    return true;
  }

  /** How many holds expired in the last hour. At most 1 000 are remembered. */
  lostInLastHour(now: number, isShown: (key: string) => boolean): number {
    return this.#losses.filter(({ key, at }) => at > now - hourMs && isShown(key)).length;
  }

  /** The ends of all keys, newest first. */
  last(max: number, isShown: (key: string) => boolean): Hold[] {
    return this.#ends
      .filter(({ key }) => isShown(key))
      .slice(-max)
      .reverse();
  }

  /** The ends of the key, newest first. */
  of(key: string): Hold[] {
    return this.#ends.filter((hold) => hold.key === key).reverse();
  }

  /** The durations of the released holds of each key with at least 5 of them. */
  times(isShown: (key: string) => boolean): HoldTimes[] {
    const durations = new Map<string, number[]>();
    for (const { key, since, until, end } of this.#ends) {
      if (until === null || end !== "released") continue;
      const known = durations.get(key);
      if (known) known.push(Math.max(0, until - since));
      else durations.set(key, [Math.max(0, until - since)]);
    }
    return Array.from(durations)
      .filter(([key, { length }]) => length >= leastHolds && isShown(key))
      .map(([key, values]) => {
        const sorted = values.sort((a, b) => a - b);
        return { key, count: sorted.length, p50Ms: quantile(sorted, 0.5), p95Ms: quantile(sorted, 0.95) };
      });
  }

  clear(): void {
    this.#ends.length = 0;
    this.#losses.length = 0;
    this.#counts.clear();
  }

  #remove(index: number): void {
    const [removed] = this.#ends.splice(index, 1);
    if (removed) {
      const count = (this.#counts.get(removed.key) ?? 1) - 1;
      if (count === 0) {
        this.#counts.delete(removed.key);
      } else {
        this.#counts.set(removed.key, count);
      }
    }
  }
}

export function holdOf(key: string, holder: Holder, since: number): Hold {
  const { owner, fencingToken, reason } = holder;
  return {
    key,
    owner,
    ...(fencingToken !== undefined && { fencingToken: fencingToken.toString() }),
    since,
    until: null,
    ...(reason !== undefined && { reason }),
  };
}
