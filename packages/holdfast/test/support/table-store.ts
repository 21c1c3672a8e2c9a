import type { Capabilities, ListQuery } from "../../src/driver.ts";
import type {
  BrokenGrant,
  LeaseStore,
  StoreAttempt,
  StoreExtension,
  StoreFailure,
  StoreListener,
  StoreReply,
} from "../../src/drivers/store/lease-store.ts";
import { kindMismatch, limitMismatch, type LossReason } from "../../src/errors.ts";
import { lockState, type LockState, type NodeState } from "../../src/lock-state.ts";
import { holderOf, shareOf, type Lock, type Row, type Share, type Table } from "./lease-table.ts";

/** A store for tests of the driver. `intercept` may delay or lose requests and replies. */
export class TableStore implements LeaseStore {
  readonly capabilities: Capabilities;
  readonly isNotified: boolean;
  readonly table: Table;
  readonly subscribe?: (listener: StoreListener) => () => void;
  /** Replaces each call. The default executes it at once. */
  intercept: <T>(name: string, execute: () => T) => Promise<T> = async (_, execute) => execute();

  constructor(table: Table, { notifies = false } = {}) {
    this.table = table;
    this.isNotified = notifies;
    this.capabilities = {
      kinds: ["mutex", "read-write", "semaphore"],
      guarantee: "process",
      waiting: notifies ? "notify" : "poll",
      requeue: false,
      fencingBlocks: false,
      maxTtlMs: 86_400_000,
      claimMs: 86_400_000,
    };
    if (notifies) {
      this.subscribe = (listener) => {
        table.listeners.add(listener);
        return () => table.listeners.delete(listener);
      };
    }
  }

  checkKey(): void {
    // every key
  }

  acquire(attempt: StoreAttempt): Promise<StoreReply> {
    return this.intercept("acquire", () => this.#acquire(attempt));
  }

  extend({ key, token, fencingToken, ttlMs, info }: StoreExtension): Promise<number | LossReason> {
    return this.intercept("extend", () => {
      const lock = this.table.lock(key);
      const row = lock.rows.get(token);
      if (row === undefined || row.broken !== undefined || row.fencingToken > fencingToken) {
        return this.#lossOf(lock, row);
      }
      row.expiresAt = Math.max(row.expiresAt, this.table.clock.now() + ttlMs);
      Object.assign(row, info);
      return row.expiresAt - this.table.clock.now();
    });
  }

  verify(key: string, token: string, fencingToken = 2n ** 63n): Promise<number | LossReason> {
    return this.intercept("verify", () => {
      const lock = this.table.lock(key);
      const row = lock.rows.get(token);
      return row === undefined || row.broken !== undefined || row.fencingToken > fencingToken
        ? this.#lossOf(lock, row)
        : row.expiresAt - this.table.clock.now();
    });
  }

  release(key: string, token: string): Promise<boolean> {
    return this.intercept("release", () => {
      const lock = this.table.lock(key);
      const row = lock.rows.get(token);
      lock.rows.delete(token);
      lock.entries.delete(token);
      this.#wakeFirst(lock);
      return row !== undefined && row.broken === undefined;
    });
  }

  downgrade(key: string, token: string): Promise<boolean> {
    return this.intercept("downgrade", () => {
      const lock = this.table.lock(key);
      const row = lock.rows.get(token);
      if (row) row.weight = 1;
      this.#wakeFirst(lock);
      return row !== undefined && row.broken === undefined;
    });
  }

  setLimit(key: string, limit: number): Promise<void> {
    return this.intercept("setLimit", () => {
      const lock = this.table.lock(key);
      if (lock.rows.size + lock.entries.size > 0) {
        lock.limit = limit;
        this.#wakeFirst(lock);
      }
    });
  }

  inspect(key: string): Promise<LockState> {
    return this.intercept("inspect", () => this.#stateOf(key));
  }

  list({ prefix, cursor, limit }: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    return this.intercept("list", () => {
      const held = [...this.table.locks.keys()]
        .filter((key) => key.startsWith(prefix) && key > (cursor?.slice(1) ?? ""))
        .sort()
        .map((key) => this.#stateOf(key))
        .filter(({ holders }) => holders.length > 0);
      return {
        locks: held.slice(0, limit),
        cursor: held.length > limit ? `>${held[limit - 1]?.key}` : null,
      };
    });
  }

  breakGrant(key: string, fencingToken: bigint, reason: string): Promise<BrokenGrant | null> {
    return this.intercept("break", () => {
      const lock = this.table.lock(key);
      const row = [...lock.rows.values()].find((one) => one.fencingToken === fencingToken && !one.broken);
      if (row === undefined) return null;
      row.broken = reason;
      for (const listener of this.table.listeners) listener.lost(row.token, "broken", new Error(reason));
      this.#wakeFirst(lock);
      return { token: row.token };
    });
  }

  isCurrent(key: string, fencingToken: bigint): Promise<boolean> {
    return this.intercept("isCurrent", () =>
      this.#stateOf(key).holders.some((holder) => holder.fencingToken === fencingToken),
    );
  }

  async nodes(): Promise<NodeState[]> {
    const unknown = {
      version: null,
      role: null,
      replication: null,
      runId: null,
      uptimeMs: null,
      clockOffsetMs: null,
    };
    const state = { node: "table", reachable: true, latencyMs: 0, quarantine: null, error: null } as const;
    return [{ ...unknown, ...state, notifications: "unavailable" }];
  }

  failureOf(error: unknown): StoreFailure {
    return { message: String(error), outcome: "unknown", retryable: true };
  }

  async close(): Promise<void> {
    // nothing is open
  }

  #acquire(attempt: StoreAttempt): StoreReply {
    const { key, token, ttlMs } = attempt;
    const lock = this.table.lock(key);
    const own = lock.rows.get(token);
    if (own && own.broken === undefined) {
      own.expiresAt = Math.max(own.expiresAt, this.table.clock.now() + ttlMs);
      return { outcome: "granted", fencingToken: own.fencingToken };
    }
    const share = shareOf(attempt.lockMode);
    this.#checkShare(lock, attempt, share);
    const others = [...lock.rows.values()].filter((row) => row.broken === undefined);
    const used = others.reduce((sum, row) => sum + row.weight, 0);
    const ticket = lock.entries.get(token)?.ticket ?? Number(attempt.ticket ?? this.table.next());
    const earlier = [...lock.entries.values()].filter((one) => one.ticket < ticket && one.token !== token);
    if (earlier.length > 0 || used + share.weight > lock.limit) {
      return this.#keep(lock, attempt, ticket, earlier.length);
    }
    const fencingToken = BigInt(this.table.next());
    lock.entries.delete(token);
    const expiresAt = this.table.clock.now() + ttlMs;
    lock.rows.set(token, { ...attempt, weight: share.weight, fencingToken, expiresAt });
    return { outcome: "granted", fencingToken };
  }

  #checkShare(lock: Lock, { key, token }: StoreAttempt, { kind, weight, limit, accepts }: Share): void {
    const isUsed =
      lock.entries.size > 0 || [...lock.rows.values()].some(({ broken }) => broken === undefined);
    if (!isUsed) {
      Object.assign(lock, { kind, limit });
    } else if (lock.kind !== kind) {
      throw kindMismatch(key, lock.kind);
    } else if (lock.limit !== limit && !(weight <= lock.limit && (lock.entries.has(token) || accepts))) {
      lock.entries.delete(token);
      this.#wakeFirst(lock);
      throw limitMismatch(key, lock.limit);
    }
  }

  #keep(lock: Lock, attempt: StoreAttempt, ticket: number, position: number): StoreReply {
    const { key, token, waitMs, owner, entryTtlMs } = attempt;
    const now = this.table.clock.now();
    if (waitMs === null || waitMs <= 0) {
      lock.entries.delete(token);
      return { outcome: "held", holder: this.#stateOf(key).holders[0], position };
    }
    lock.entries.set(token, { token, ticket, owner, seenUntil: now + Math.min(waitMs, entryTtlMs) });
    const ends = [...lock.rows.values()].map(({ expiresAt }) => expiresAt - now);
    return { outcome: "queued", ticket: String(ticket), position, remainingMs: Math.min(...ends) };
  }

  #lossOf(lock: Lock, row: Row | undefined): LossReason {
    return row?.broken === undefined
      ? lock.kind === "mutex" && lock.rows.size > 0
        ? "stolen"
        : "expired"
      : "broken";
  }

  #wakeFirst(lock: Lock): void {
    const first = [...lock.entries.values()].sort((one, other) => one.ticket - other.ticket)[0];
    for (const listener of first ? this.table.listeners : []) {
      listener.wake(String(first?.ticket));
    }
  }

  #stateOf(key: string): LockState {
    const { kind, limit, rows, entries } = this.table.lock(key);
    const now = this.table.clock.now();
    const holders = [...rows.values()]
      .filter(({ broken }) => broken === undefined)
      .sort((one, other) => one.expiresAt - other.expiresAt)
      .map((row) => holderOf(kind, row, now));
    return lockState({
      key,
      kind,
      limit: kind === "read-write" ? Infinity : limit,
      holders,
      waiters: [...entries.values()]
        .sort((one, other) => one.ticket - other.ticket)
        .map(({ owner }, position) => ({ owner, position })),
      waiterCount: entries.size,
      remainingMs: holders.at(-1)?.remainingMs ?? null,
      fencingToken: holders.reduce<bigint | null>(
        (max, { fencingToken = 0n }) => (max === null || fencingToken > max ? fencingToken : max),
        null,
      ),
      nodes: [{ node: "table", held: holders.length > 0 }],
    });
  }
}
