import type { HoldTimes, Holder, Lock } from "../api/types.ts";
import { longHoldOf, type LongHold } from "./long-hold.ts";
import { isStaleState, stateOf, type StateWord } from "./states.ts";

/** A lock as the console knows it. Times are ms since 1970 by the browser's clock. `structuredClone` copies a row between tabs. */
export interface Row {
  readonly key: string;
  /** The key with padded numbers, so that `order:2` sorts before `order:10`. */
  readonly sortKey: string;
  readonly lock: Lock;
  /** When this state was received. */
  readonly at: number;
  /** Never `held long`, which depends on the time: see {@link stateAt}. */
  readonly state: Exclude<StateWord, "held long">;
  /** Since when the first holder holds the lock. */
  readonly since: number | undefined;
  /** Whether the engine reported `since`. Otherwise the hold may be older. */
  readonly isSinceExact: boolean;
  /** The longest remaining TTL of the grant that was seen: a lower bound of its TTL. */
  readonly ttlMs: number | undefined;
  /** When a renewal was seen last. Undefined also with several holders: the remaining TTL is that of any of them. */
  readonly renewedAt: number | undefined;
  /** How long the oldest waiter had waited at `at`, if known. */
  readonly oldestWaitMs: number | undefined;
  /** From which age on the hold is long. */
  readonly long: LongHold | undefined;
}

/** A smaller increase of the remaining time can come from the journey of the reply. */
const renewalNoiseMs = 300;

/**
 * Derives a row from a state and from the row before.
 * @param usual how long earlier holds of the key lasted, if known
 */
export function rowOf(lock: Lock, at: number, before: Row | undefined, usual?: HoldTimes): Row {
  const [holder] = lock.holders;
  const known = before !== undefined && isSameGrant(before.lock.holders[0], holder) ? before : undefined;
  const ttlMs = ttlOf(lock, known);
  const isSinceExact = holder?.heldMs !== undefined || known?.isSinceExact === true;
  const observed = known?.since ?? (holder === undefined ? undefined : at);
  const since = holder?.heldMs === undefined ? observed : at - holder.heldMs;
  return {
    key: lock.key,
    sortKey: sortKeyOf(lock.key, before),
    lock,
    at,
    state: stateOf(lock, ttlMs),
    since,
    isSinceExact,
    ttlMs,
    renewedAt: renewedAtOf(lock, at, known, ttlMs),
    oldestWaitMs: lock.oldestWaitMs,
    long: ttlMs === undefined ? undefined : longHoldOf(ttlMs, usual, lock.waiterCount > 0),
  };
}

/** The state that the page shows. */
export function stateAt(row: Row, now: number): StateWord {
  return isLong(row, now) ? "held long" : row.state;
}

/** Whether the holder renews in time, and holds much longer than usual. */
export function isLong(row: Row, now: number): boolean {
  return row.state === "held" && (heldMs(row, now) ?? 0) > (row.long?.afterMs ?? Infinity);
}

/** The remaining time at `now`. A state that is too old for the TTL is shown as it was received. */
export function leftMs({ lock, at, ttlMs }: Row, now: number): number | undefined {
  if (lock.remainingMs === null) return undefined;
  const age = Math.max(0, now - at);
  return age < (ttlMs ?? 0) / 2 ? Math.max(0, lock.remainingMs - age) : lock.remainingMs;
}

export function heldMs({ since }: Row, now: number): number | undefined {
  return since === undefined ? undefined : Math.max(0, now - since);
}

export function oldestWaitMs({ oldestWaitMs: waited, at }: Row, now: number): number | undefined {
  return waited === undefined ? undefined : waited + Math.max(0, now - at);
}

const longWaitMs = 60_000;

/** Whether a wait is long enough to be noticed in the list: a minute, and longer than a lost holder could cause. */
export function isLongWait({ ttlMs = 0 }: Row, waitedMs: number): boolean {
  return waitedMs > Math.max(longWaitMs, ttlMs);
}

/** Whether a renewal was seen, and the lease is not late. */
export function isRenewing({ state, renewedAt }: Row): boolean {
  return state === "held" && renewedAt !== undefined;
}

/** Whether the lock may never be released without help: not renewed, of an unknown holder, or without an expiry. */
export function isStale({ state }: Row): boolean {
  return isStaleState(state);
}

function sortKeyOf(key: string, before: Row | undefined): string {
  return before?.sortKey ?? key.replace(/\d+/g, (digits) => digits.padStart(16, "0"));
}

function isSameGrant(a: Holder | undefined, b: Holder | undefined): boolean {
  return a?.owner === b?.owner && a?.fencingToken === b?.fencingToken;
}

function ttlOf({ remainingMs }: Lock, known: Row | undefined): number | undefined {
  if (remainingMs === null) return undefined;
  return Math.max(remainingMs, known?.ttlMs ?? 0);
}

function renewedAtOf(
  { remainingMs, holders }: Lock,
  at: number,
  known: Row | undefined,
  ttlMs = 0,
): number | undefined {
  if (holders.length > 1) return undefined;
  const before = known?.lock.remainingMs;
  if (known === undefined || typeof before !== "number" || remainingMs === null) return known?.renewedAt;
  const expected = before - (at - known.at);
  return remainingMs > expected + renewalNoiseMs ? at - (ttlMs - remainingMs) : known.renewedAt;
}
