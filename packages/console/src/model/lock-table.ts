import type { HoldTimes, Lock, LockEvent } from "../api/types.ts";
import { rowOf, type Row } from "./row.ts";

/** The changes of one frame, for other tabs. */
export interface TableChanges {
  readonly rows: readonly Row[];
  readonly gone: readonly string[];
  /** Whether the rows are all: other rows are to be removed. */
  readonly isAll: boolean;
}

/**
 * The locks that the console knows. Events of the stream and complete lists arrive in any order. A list never replaces a row that was
 * received after the list had been requested.
 */
export class LockTable {
  readonly #rows = new Map<string, Row>();
  #changed = new Set<string>();
  #isReset = false;
  readonly #usualOf: (key: string) => HoldTimes | undefined;

  /** @param usualOf how long earlier holds of a key lasted, if known */
  constructor(usualOf: (key: string) => HoldTimes | undefined = () => undefined) {
    this.#usualOf = usualOf;
  }

  get rows(): readonly Row[] {
    return [...this.#rows.values()];
  }

  get size(): number {
    return this.#rows.size;
  }

  row(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  /** @param at when the event was received */
  applyEvent({ type, key, state }: LockEvent, at: number): void {
    if (type === "gone" || isFree(state)) this.#remove(key);
    else this.#set(state, at);
  }

  /** @param receivedAt when this page was received; @param startedAt when the first page of the list was requested */
  applyPage(locks: readonly Lock[], receivedAt: number, startedAt: number): void {
    for (const lock of locks) {
      const known = this.#rows.get(lock.key);
      if (known === undefined || known.at < startedAt) this.#set(lock, receivedAt);
    }
  }

  /** Ends a complete list: removes the rows that are neither in the list nor newer. */
  endList(keys: ReadonlySet<string>, startedAt: number): void {
    for (const { key, at } of this.#rows.values()) {
      if (at < startedAt && !keys.has(key)) this.#remove(key);
    }
  }

  /** Applies the changes that another tab has published. */
  applyChanges({ rows, gone, isAll }: TableChanges): void {
    if (isAll) this.clear();
    for (const row of rows) {
      this.#rows.set(row.key, row);
      this.#changed.add(row.key);
    }
    for (const key of gone) this.#remove(key);
  }

  clear(): void {
    this.#rows.clear();
    this.#changed.clear();
    this.#isReset = true;
  }

  /** The changes since the last call. Undefined: none. */
  takeChanges(): TableChanges | undefined {
    if (!this.#isReset && this.#changed.size === 0) return undefined;
    const changes = this.#isReset ? this.everything() : this.#changesOf(this.#changed);
    this.#changed = new Set();
    this.#isReset = false;
    return changes;
  }

  everything(): TableChanges {
    return { rows: this.rows, gone: [], isAll: true };
  }

  #changesOf(keys: ReadonlySet<string>): TableChanges {
    const rows = [...keys].flatMap((key) => this.#rows.get(key) ?? []);
    return { rows, gone: [...keys].filter((key) => !this.#rows.has(key)), isAll: false };
  }

  #set(lock: Lock, at: number): void {
    this.#rows.set(lock.key, rowOf(lock, at, this.#rows.get(lock.key), this.#usualOf(lock.key)));
    this.#changed.add(lock.key);
  }

  #remove(key: string): void {
    if (this.#rows.delete(key)) this.#changed.add(key);
  }
}

/** A key with waiters only is shown: its next grant is due. */
function isFree({ holders, remaining, waiterCount }: Lock): boolean {
  return holders.length === 0 && remaining === undefined && waiterCount === 0;
}
