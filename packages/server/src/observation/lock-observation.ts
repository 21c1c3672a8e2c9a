import { subscribe, unsubscribe } from "node:diagnostics_channel";

import type { Holder, LockEvent, Locks, LockState } from "holdfast";

import { Contention, periodMs, type KeyContention } from "./contention.ts";
import { HoldHistory, holdOf, type Hold, type HoldTimes } from "./history.ts";

/** The watch ends if no request has asked for this time. Afterwards nothing is known, and the next request starts anew. */
const idleMs = 300_000;
const readyMs = 3_000;
const maxShown = 50;
const maxBreaks = 1_000;

interface Seen {
  readonly state: LockState;
  /** When the oldest waiter began to wait, by this machine's clock, if the engine knows. */
  readonly waitingSince: number | undefined;
  /** The holds in force, by fencing token or owner. */
  readonly holds: ReadonlyMap<string, Hold>;
  /** When a holder expires without a renewal, by this machine's clock; null: no expiry. */
  readonly expiresAt: number | null;
}

/** One watch of all locks, which all requests of this instance share. It runs while requests ask for its results. */
export class LockObservation {
  readonly #locks: Locks;
  readonly #present = new Map<string, Seen>();
  readonly #history = new HoldHistory();
  readonly #contention = new Contention();
  /** The grants that this process broke, as `key token`. */
  readonly #broken = new Set<string>();
  #askedAt = 0;
  #knownSince = 0;
  #ready: Promise<void> | undefined;
  #ending: AbortController | undefined;

  constructor(locks: Locks) {
    this.#locks = locks;
  }

  /** When the present watch began, milliseconds since 1970. Earlier ends are not known. */
  get knownSince(): number {
    return this.#knownSince;
  }

  /** Starts the watch if none runs, and waits for its first snapshot. @returns whether the snapshot is complete */
  async ask(): Promise<boolean> {
    this.#askedAt = Date.now();
    if (!this.#ending) {
      this.#start();
    }
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, readyMs, false);
    });
    try {
      return await Promise.race([this.#ready?.then(() => true) ?? true, limit]);
    } finally {
      clearTimeout(timer);
    }
  }

  states(): LockState[] {
    return Array.from(this.#present.values(), ({ state }) => state);
  }

  /** The holds of a key, newest first, at most 50. */
  history(key: string): Hold[] {
    const present = Array.from(this.#present.get(key)?.holds.values() ?? []).reverse();
    return [...present, ...this.#history.of(key)].slice(0, maxShown);
  }

  /** How long holds usually last, by key. */
  holdTimes(isShown: (key: string) => boolean): HoldTimes[] {
    return this.#history.times(isShown);
  }

  contention(isShown: (key: string) => boolean): KeyContention[] {
    return this.#contention.top(Date.now(), isShown);
  }

  close(): void {
    this.#ending?.abort();
  }

  #start(): void {
    const ending = new AbortController();
    this.#ending = ending;
    this.#knownSince = Date.now();
    const period = setInterval(() => this.#endPeriod(), periodMs).unref();
    subscribe("holdfast:broken", this.#onBroken);
    this.#ready = new Promise((resolve) => {
      void this.#watch(ending.signal, resolve).finally(() => {
        resolve();
        clearInterval(period);
        unsubscribe("holdfast:broken", this.#onBroken);
        this.#forget();
      });
    });
  }

  #endPeriod(): void {
    this.#contention.endPeriod();
    if (Date.now() - this.#askedAt > idleMs) {
      this.close();
    }
  }

  #forget(): void {
    this.#ending = undefined;
    this.#present.clear();
    this.#history.clear();
    this.#contention.clear();
    this.#broken.clear();
  }

  /** Never rejects. A failure of the engine ends the watch, and the next request starts another one. */
  async #watch(signal: AbortSignal, ready: () => void): Promise<void> {
    try {
      await this.#readyIfEmpty(ready);
      for await (const event of this.#locks.watch({ prefix: "" }, { signal })) {
        this.#seen(event);
        if (event.type === "snapshot") {
          setImmediate(ready); // the other events of the snapshot come in the same turn
        }
      }
    } catch {
      // the next request starts again
    }
  }

  /** Without any lock the watch has no first event. */
  async #readyIfEmpty(ready: () => void): Promise<void> {
    const { locks, cursor } = await this.#locks.list({ limit: 1 });
    if (locks.length === 0 && cursor === null) {
      ready();
    }
  }

  #seen({ type, key, state }: LockEvent): void {
    const now = Date.now();
    const before = this.#present.get(key);
    const holds = this.#holdsOf(state, before, now);
    for (const [name, hold] of before?.holds ?? []) {
      if (!holds.has(name)) {
        this.#ended(hold, before?.expiresAt ?? null, now);
      }
    }
    this.#contention.waiting(key, state.waiterCount, waitingSince(state, now));
    if (type === "gone") {
      this.#present.delete(key);
    } else {
      const expiresAt = state.remainingMs === null ? null : now + state.remainingMs;
      this.#present.set(key, { state, waitingSince: waitingSince(state, now), holds, expiresAt });
    }
  }

  #holdsOf({ key, holders }: LockState, before: Seen | undefined, now: number): Map<string, Hold> {
    const holds = new Map<string, Hold>();
    for (const holder of holders) {
      const since = now - (holder.heldMs ?? 0);
      const name = nameOf(holder);
      const known = before?.holds.get(name);
      holds.set(name, known ?? holdOf(key, holder, since));
      if (before && !known) {
        this.#granted(key, before, since);
      }
    }
    return holds;
  }

  #granted(key: string, before: Seen, since: number): void {
    const { waitingSince: start } = before;
    if (start !== undefined) {
      this.#contention.waited(key, Math.max(0, since - start));
    }
  }

  #ended(hold: Hold, expiresAt: number | null, now: number): void {
    const isExpired = expiresAt !== null && expiresAt <= now;
    const isBroken = this.#broken.delete(`${hold.key} ${hold.fencingToken ?? ""}`);
    this.#history.add({ ...hold, until: now, end: isBroken ? "broken" : isExpired ? "expired" : "released" });
    this.#contention.held(hold.key, Math.max(0, now - hold.since));
  }

  readonly #onBroken = (message: unknown): void => {
    const { key, fencingToken } = message as { key: string; fencingToken: bigint };
    this.#broken.add(`${key} ${fencingToken}`);
    const [oldest] = this.#broken;
    if (this.#broken.size > maxBreaks && oldest !== undefined) {
      this.#broken.delete(oldest);
    }
  };
}

function nameOf({ fencingToken, owner }: Holder): string {
  return fencingToken?.toString() ?? owner;
}

/** When the oldest waiter began to wait, by this machine's clock, if the engine knows. */
function waitingSince({ oldestWaitMs }: LockState, now: number): number | undefined {
  return oldestWaitMs === undefined ? undefined : now - oldestWaitMs;
}
