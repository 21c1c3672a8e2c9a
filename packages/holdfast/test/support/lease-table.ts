import type { LockMode } from "../../src/driver.ts";
import type { StoreAttempt, StoreListener } from "../../src/drivers/store/lease-store.ts";
import type { HeldKind, Holder } from "../../src/lock-state.ts";
import type { Clock } from "../../src/runtime/clock.ts";

export interface Row extends StoreAttempt {
  readonly fencingToken: bigint;
  weight: number;
  expiresAt: number;
  broken?: string;
}

interface Entry {
  readonly token: string;
  readonly ticket: number;
  readonly owner: string;
  seenUntil: number;
}

export interface Lock {
  kind: HeldKind;
  limit: number;
  readonly rows: Map<string, Row>;
  readonly entries: Map<string, Entry>;
}

/** The tables of an engine in memory, which several stores share, like the processes of one engine. */
export class Table {
  readonly locks = new Map<string, Lock>();
  readonly listeners = new Set<StoreListener>();
  readonly clock: Clock;
  #last = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  next(): number {
    return (this.#last += 1);
  }

  /** The lock without expired rows and entries. */
  lock(key: string): Lock {
    const lock = this.locks.get(key) ?? { kind: "mutex", limit: 1, rows: new Map(), entries: new Map() };
    this.locks.set(key, lock);
    const now = this.clock.now();
    for (const [token, { expiresAt }] of lock.rows) {
      if (expiresAt <= now) lock.rows.delete(token);
    }
    for (const [token, { seenUntil }] of lock.entries) {
      if (seenUntil <= now) lock.entries.delete(token);
    }
    return lock;
  }
}

const allShares = 2 ** 31;

export interface Share {
  readonly kind: HeldKind;
  readonly weight: number;
  readonly limit: number;
  readonly accepts: boolean;
}

export function shareOf(mode: LockMode | undefined): Share {
  if (mode?.kind === "semaphore") {
    return { kind: mode.kind, weight: mode.permits, limit: mode.limit, accepts: mode.hasWaited === true };
  }
  return mode === undefined
    ? { kind: "mutex", weight: 1, limit: 1, accepts: false }
    : { kind: mode.kind, weight: mode.mode === "read" ? 1 : allShares, limit: allShares, accepts: false };
}

export function holderOf(kind: HeldKind, row: Row, now: number): Holder {
  const { owner, reason, labels, fencingToken, weight } = row;
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken,
    ...(kind === "read-write" ? { mode: weight === 1 ? "read" : "write" } : {}),
    ...(kind === "semaphore" ? { permits: weight } : {}),
    remainingMs: row.expiresAt - now,
  };
}
