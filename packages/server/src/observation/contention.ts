import { quantile } from "./quantile.ts";

/** The distribution of some times. */
interface Distribution {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** How callers waited for one key. */
export interface KeyContention {
  readonly key: string;
  /** The present number of waiters. */
  readonly waiting: number;
  readonly oldestMs?: number;
  readonly waits: Distribution;
  readonly holds: Distribution;
  /** The largest number of waiters in each of the last 60 periods of 10 s, the newest last. */
  readonly recent: readonly number[];
}

export const periodMs = 10_000;
const periods = 60;
const maxKeys = 500;
const maxSamples = 100;
const maxShown = 20;

interface Tracked {
  waiting: number;
  /** When the oldest present waiter began to wait, if known. */
  waitingSince: number | undefined;
  peak: number;
  readonly recent: number[];
  readonly waits: Samples;
  readonly holds: Samples;
}

/** The waiters of the keys that had some in the last 10 minutes, at most 500 keys. The least recently contended keys go first. */
export class Contention {
  readonly #tracked = new Map<string, Tracked>();

  waiting(key: string, count: number, since: number | undefined): void {
    const known = this.#tracked.get(key);
    if (count === 0 && !known) {
      return;
    }
    const tracked = known ?? newlyTracked();
    tracked.waiting = count;
    tracked.waitingSince = count === 0 ? undefined : since;
    tracked.peak = Math.max(tracked.peak, count);
    if (count > 0) {
      this.#tracked.delete(key);
      this.#tracked.set(key, tracked);
    }
    const [oldest] = this.#tracked.keys();
    if (this.#tracked.size > maxKeys && oldest !== undefined) {
      this.#tracked.delete(oldest);
    }
  }

  /** A caller was granted the key after a wait. */
  waited(key: string, ms: number): void {
    this.#tracked.get(key)?.waits.add(ms);
  }

  held(key: string, ms: number): void {
    this.#tracked.get(key)?.holds.add(ms);
  }

  /** Ends a period. A key without a waiter in all periods is forgotten. */
  endPeriod(): void {
    for (const [key, tracked] of this.#tracked) {
      tracked.recent.push(tracked.peak);
      tracked.recent.splice(0, tracked.recent.length - periods);
      tracked.peak = tracked.waiting;
      if (tracked.recent.length === periods && tracked.recent.every((count) => count === 0)) {
        this.#tracked.delete(key);
      }
    }
  }

  /** The keys with the most waiting time in the last 10 minutes, at most 20. */
  top(now: number, isShown: (key: string) => boolean): KeyContention[] {
    return Array.from(this.#tracked)
      .filter(([key]) => isShown(key))
      .map(([key, tracked]) => ({ tracked, key, load: loadOf(tracked) }))
      .sort((a, b) => b.load - a.load || (a.key < b.key ? -1 : 1))
      .slice(0, maxShown)
      .map(({ key, tracked: { waiting, waitingSince, waits, holds, recent, peak } }) => ({
        key,
        waiting,
        ...(waitingSince !== undefined && { oldestMs: Math.max(0, Math.round(now - waitingSince)) }),
        waits: waits.distribution(),
        holds: holds.distribution(),
        recent: [...recent.slice(1 - periods), peak],
      }));
  }

  clear(): void {
    this.#tracked.clear();
  }
}

/** The last 100 of some times. */
class Samples {
  readonly #last: number[] = [];
  #count = 0;

  add(ms: number): void {
    this.#count += 1;
    this.#last.push(ms);
    this.#last.splice(0, this.#last.length - maxSamples);
  }

  distribution(): Distribution {
    const sorted = [...this.#last].sort((a, b) => a - b);
    return { count: this.#count, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
  }
}

function newlyTracked(): Tracked {
  return {
    waiting: 0,
    waitingSince: undefined,
    peak: 0,
    recent: [],
    waits: new Samples(),
    holds: new Samples(),
  };
}

function loadOf({ recent, peak }: Tracked): number {
  return recent.reduce((sum, count) => sum + count, peak);
}
