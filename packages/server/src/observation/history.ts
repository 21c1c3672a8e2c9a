import type { AuditRecord, Holder } from "holdfast";

import { quantile } from "./quantile.ts";

/** The break of a hold, from the audit of the engine. */
interface HoldBreak {
  /** The operator. */
  readonly principal: string;
  readonly reason: string;
}

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
  /** Absent also for a break without a record in the engine's audit. */
  readonly break?: HoldBreak;
  readonly reason?: string;
}

/** A grant as audits name it. */
interface Grant {
  readonly key: string;
  readonly fencingToken?: string | bigint | undefined;
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

/** The last ends of holds, at most 1 000, and at most 50 of one key. The oldest go first, but breaks of the last hour stay for longest. */
export class HoldHistory {
  readonly #ends: Hold[] = [];
  readonly #counts = new Map<string, number>();
  /** The last holds that expired, apart from the ends, which may be many. */
  #losses: (Grant & { readonly at: number })[] = [];

  add(hold: Hold): void {
    const count = this.#counts.get(hold.key) ?? 0;
    if (count >= maxEndsOfKey) {
      this.#removeOldest(({ key }) => key === hold.key);
    } else if (this.#ends.length >= maxEnds) {
      this.#removeOldest(() => true);
    }
    this.#ends.push(hold);
    if (hold.end === "expired") {
      const { key, fencingToken, until, since } = hold;
      this.#losses.push({ key, fencingToken, at: until ?? since });
      this.#losses.splice(0, this.#losses.length - maxLosses);
    }
    this.#counts.set(hold.key, (this.#counts.get(hold.key) ?? 0) + 1);
  }

  /** The end of this hold was a break, which became known after the end. @returns false: the history has no such end */
  wasBroken(grant: Grant): boolean {
    const name = grantName(grant);
    return this.#correct((each) => (grantName(each) === name ? {} : undefined));
  }

  /** Corrects the ends of holds that operators broke. */
  correct(records: readonly AuditRecord[]): void {
    const breaks = new Map(records.map((record) => [grantName(record), breakOf(record)]));
    this.#correct((each) => breaks.get(grantName(each)));
  }

  /** How many holds expired in the last hour. At most 1 000 are remembered. */
  lostInLastHour(now: number, isShown: (key: string) => boolean): number {
    return this.#losses.filter(({ key, at }) => at > now - hourMs && isShown(key)).length;
  }

  /** The ends of all keys, newest first. */
  last(max: number, isShown: (key: string) => boolean): Hold[] {
    return newest(this.#ends.filter(({ key }) => isShown(key)).reverse(), max);
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
    this.#losses = [];
    this.#counts.clear();
  }

  /** @param breakOf undefined: the grant was not broken. @returns whether an end was a break */
  #correct(breakOf: (grant: Grant) => Pick<Hold, "break"> | undefined): boolean {
    let isFound = false;
    for (const [index, hold] of this.#ends.entries()) {
      const found = breakOf(hold);
      if (found) {
        this.#ends[index] = { ...hold, ...found, end: "broken" };
        isFound = true;
      }
    }
    this.#losses = this.#losses.filter((loss) => !breakOf(loss));
    return isFound;
  }

  #removeOldest(isOf: (hold: Hold) => boolean): void {
    const now = Date.now();
    const index = this.#ends.findIndex((hold) => isOf(hold) && !isBrokenLately(hold, now));
    this.#remove(index >= 0 ? index : this.#ends.findIndex(isOf));
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

export function grantName({ key, fencingToken }: Grant): string {
  return `${String(fencingToken)} ${key}`;
}

function breakOf({ by, reason }: AuditRecord): Pick<Hold, "break"> {
  return { break: { principal: by, reason } };
}

/** The first holds of a list, newest first. In its second half, breaks of the last hour go before other ends: their processes may still run. */
export function newest(holds: readonly Hold[], max: number): Hold[] {
  const now = Date.now();
  const half = Math.floor(max / 2);
  const rest = holds.slice(half);
  const breaks = rest.filter((hold) => isBrokenLately(hold, now));
  const others = rest.filter((hold) => !isBrokenLately(hold, now));
  const kept = new Set([...breaks, ...others].slice(0, max - half));
  return [...holds.slice(0, half), ...rest.filter((hold) => kept.has(hold))];
}

function isBrokenLately({ end, until }: Hold, now: number): boolean {
  return end === "broken" && until !== null && until > now - hourMs;
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
