import { fencingTokenAsText, withHiddenJson, withJson } from "./runtime/plain-values.ts";

/** The kind of a key on the engine. Reentrant locks, locks of several keys and elections are mutexes on the engine. */
export type LockKind = HeldKind | "latch";

/** The kinds that have holders. */
export type HeldKind = "mutex" | "read-write" | "semaphore";

/** A holder, as known to the engine. `JSON.stringify` writes the fencing token as a decimal string. */
export interface Holder {
  /** Readable text: the `owner` option, or program, host and pid. `unknown` for a holder that is not a Holdfast client. */
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly fencingToken?: bigint;
  /** The mode of a read-write lock. */
  readonly mode?: "read" | "write";
  /** The permits of a semaphore. */
  readonly permits?: number;
  /** The remaining TTL, ms; absent: no TTL, or not known. */
  readonly remainingMs?: number;
  /**
   * When the engine gave the grant, by its clock, milliseconds since 1970. A lease that was handed over in memory keeps the time of
   * the grant. If the clock was set back before the grant, the time may be late by that step. Absent: not known.
   */
  readonly since?: number;
  /** How long the grant has lasted, by the engine's clock, ms; absent: not known. */
  readonly heldMs?: number;
  /**
   * How many callers wait in the memory of the holder's process, by its last renewal. While renewals succeed, the count is at most a
   * third of the TTL old. Absent: none are reported, or the state comes from the `Locks` of these callers and has them in `waiters`.
   */
  readonly localWaiters?: number;
  /**
   * How long the oldest of {@link localWaiters} had waited at that renewal, by the monotonic clock of the holder's process, ms. Absent:
   * none are reported, or not known.
   */
  readonly localWaitMs?: number;
}

/** One key of a lease that this process holds, as plain values without the token. `JSON.stringify` writes the fencing token as text. */
export interface HeldLease {
  readonly key: string;
  /** The kind at the engine. A lease of several keys has one entry per key, and nested reentrant leases have one together. */
  readonly kind: HeldKind;
  /** The mode of a read-write lock. */
  readonly mode?: "read" | "write";
  /** The permits of a semaphore. */
  readonly permits?: number;
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly fencingToken: bigint;
  /** When this process received the lease, milliseconds since 1970 by its own wall clock. */
  readonly since: number;
  /** The time since this process received the lease, ms, by its monotonic clock. */
  readonly heldMs: number;
  /** The TTL of each renewal, ms. */
  readonly ttlMs: number;
  /** The remaining time of safe use, ms. */
  readonly remainingMs: number;
  /** How many callers of this process wait in memory for the key. */
  readonly localWaiters: number;
}

/** A queue entry. */
export interface Waiter {
  readonly owner: string;
  /**
   * The start of the wait, milliseconds since 1970, by the engine's clock. In the memory of this process, by its own wall clock. Absent:
   * not known.
   */
  readonly since?: number;
  /**
   * How long the waiter has waited, ms, by the engine's clock. In the memory of this process, by its monotonic clock. A wait that a
   * service cuts into several requests counts from the last request on. Absent: not known, see docs/guide.md.
   */
  readonly waitedMs?: number;
  /** The rank in the queue, from 0. */
  readonly position: number;
}

/** The state of one lock on one server. */
export interface NodeView {
  readonly node: string;
  /** Whether the lock is held, or the latch not open yet; null: no reply. */
  readonly held: boolean | null;
  /** The owner of the grant on this server. */
  readonly owner?: string;
  /** The fencing token on this server. A lease on a quorum has the fencing token that a majority agreed on. */
  readonly fencingToken?: bigint;
  readonly remainingMs?: number;
  readonly waiterCount?: number;
  /** Why the server did not reply, or why its reply does not count. */
  readonly error?: string;
}

/** The state of one lock. `structuredClone` copies all fields. */
export interface LockState {
  readonly key: string;
  readonly kind: LockKind;
  /** How many holders are allowed at once; Infinity for the readers of a read-write lock. For a latch: its initial count. */
  readonly limit: number;
  /** The remaining count of a latch; 0: open. */
  readonly remaining?: number;
  /** In the order in which their grants expire. Empty if the lock is free, and for a latch. */
  readonly holders: readonly Holder[];
  /** The first 100 waiters, in queue order. */
  readonly waiters: readonly Waiter[];
  /**
   * How many callers wait: the exact number of queue entries on the engine, plus {@link Holder.localWaiters} of the holders.
   * A process with hand-over has at most one queue entry for each mutex, and its other callers wait in memory. The `Locks` of these
   * callers counts all of them exactly. Other processes see them only if the process holds the lock.
   */
  readonly waiterCount: number;
  /**
   * The longest known wait, ms: the largest {@link Waiter.waitedMs}, or {@link Holder.localWaitMs}, which is as old as the holder's last
   * renewal. Absent: no caller waits, or no wait is known.
   */
  readonly oldestWaitMs?: number;
  /** The remaining TTL of the holder or latch, ms; null: free, or without expiry. */
  readonly remainingMs: number | null;
  /** The first fencing token of the newest grant in force; null: no holder. A node of a quorum may show the last one longer. */
  readonly fencingToken: bigint | null;
  /** The state on each server. */
  readonly nodes: readonly NodeView[];
  /** Safe to log: fencing tokens are decimal strings. The method is not enumerable. */
  toJSON(): object;
}

/** Whether the lease with a fencing token holds its key. */
export type FenceState = "current" | "stale" | "unknown";

/** A change of a {@link LockState}. The first event of a watch is a `snapshot`. After `gone` the lock is free, or the latch has ended. */
export interface LockEvent {
  readonly type: "snapshot" | "changed" | "gone";
  readonly key: string;
  readonly state: LockState;
}

/** The replication state that one server reports. */
export interface Replication {
  /** The replication offset, bytes. */
  readonly offset: number;
  /** The replicas of a primary. */
  readonly replicas: readonly {
    readonly address: string;
    readonly isOnline: boolean;
    /** The bytes that the replica has not acknowledged yet. */
    readonly lagBytes: number;
    /** The time since the last acknowledgement of the replica, ms, in whole seconds. */
    readonly sinceLastAckMs: number;
  }[];
  /** Whether a replica is connected with its primary; null on a primary. */
  readonly isLinkUp: boolean | null;
  /** How many replicas a primary counts for `min-replicas-to-write`; null: the option is off. */
  readonly goodReplicas: number | null;
}

/** The state of one server, as reported by the server and as seen by this process. */
export interface NodeState {
  readonly node: string;
  readonly reachable: boolean;
  /** Round trip of the request, ms; null: no reply. */
  readonly latencyMs: number | null;
  readonly version: string | null;
  readonly role: string | null;
  /** Null: no replication, or no reply. */
  readonly replication: Replication | null;
  readonly runId: string | null;
  /** The uptime by the server's wall clock, ms; negative if that clock was set back by more than the uptime. */
  readonly uptimeMs: number | null;
  /** The server's wall clock minus the clock of this process, ms, with an error of at most half a round trip. */
  readonly clockOffsetMs: number | null;
  /** Present for a primary of Redis Cluster. */
  readonly cluster?: {
    /** The cluster state that the server reports, `ok` or `fail`; null: no reply. */
    readonly state: string | null;
    /** How many hash slots the server serves. */
    readonly slots: number;
    /** The addresses of its replicas. */
    readonly replicas: readonly string[];
  };
  /** Whether notifications arrive: proved, not proved yet, or impossible. */
  readonly notifications: "verified" | "unverified" | "unavailable";
  /** Why the votes of a node do not count, and for how long, ms, if known; null: the votes count. */
  readonly quarantine: { readonly reason: string; readonly remainingMs: number | null } | null;
  readonly error: string | null;
}

/** A {@link LockState} without `toJSON`. */
export type LockStateData = Omit<LockState, "toJSON">;

/** Whether the key has a holder or is a latch. Waiters alone do not count. */
export function exists({ holders, remaining }: LockStateData): boolean {
  return holders.length > 0 || remaining !== undefined;
}

/** How far a fencing token or a ticket may be ahead of the engine's clock after many of them in a short time. */
const allowedLeadMs = 1_000;

/**
 * The times of a grant whose fencing token is at least the time of the grant, in µs. Empty if the token is far in the future, as after
 * the engine's clock was set back.
 * @param nowMs the engine's clock, ms since 1970
 */
export function grantTimes(fencingToken: bigint | null, nowMs: number): Pick<Holder, "since" | "heldMs"> {
  const since = Number((fencingToken ?? 0n) / 1000n);
  if (fencingToken === null || since > nowMs + allowedLeadMs) {
    return {};
  }
  return { since: Math.min(since, Math.floor(nowMs)), heldMs: Math.max(0, Math.floor(nowMs - since)) };
}

/**
 * The times of a wait whose ticket is the time of its start, in µs, by the same clock as `nowMs`. Empty if the ticket is no such time, or
 * is far in the future, as after that clock was set back.
 */
export function waitTimes(ticket: number, nowMs: number): Pick<Waiter, "since" | "waitedMs"> {
  const since = Math.floor(ticket / 1000);
  if (!(since > 0) || since > nowMs + allowedLeadMs) {
    return {};
  }
  return { since: Math.min(since, Math.floor(nowMs)), waitedMs: Math.max(0, Math.floor(nowMs - since)) };
}

/** The part of {@link LockState.waiterCount} that holders reported. */
export function localWaitersOf(holders: readonly Holder[]): number {
  return holders.reduce((sum, { localWaiters = 0 }) => sum + localWaiters, 0);
}

/** Adds the oldest wait, and the `toJSON` of the state, of its holders and of its nodes. */
export function lockState(data: LockStateData): LockState {
  const { oldestWaitMs: _, ...rest } = data;
  const state = {
    ...rest,
    ...oldestWaitOf(data),
    holders: data.holders.map(withJson),
    nodes: data.nodes.map(withJson),
  };
  return withHiddenJson(state, () => ({
    ...state,
    fencingToken: state.fencingToken?.toString() ?? null,
    holders: state.holders.map(fencingTokenAsText),
    nodes: state.nodes.map(fencingTokenAsText),
  }));
}

function oldestWaitOf({
  waiters,
  holders,
}: Pick<LockState, "waiters" | "holders">): Pick<LockState, "oldestWaitMs"> {
  const waits = [
    ...waiters.map(({ waitedMs }) => waitedMs),
    ...holders.map(({ localWaitMs }) => localWaitMs),
  ];
  const oldest = waits.reduce<number>((max, waitedMs = -1) => Math.max(max, waitedMs), -1);
  return oldest < 0 ? {} : { oldestWaitMs: oldest };
}
