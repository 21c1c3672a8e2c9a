/** What a key on the engine is. Reentrant locks, locks of several keys and elections are mutexes there. */
export type LockKind = HeldKind | "latch";

/** The kinds that somebody holds. */
export type HeldKind = "mutex" | "read-write" | "semaphore";

/** Who holds or waits, as far as the engine can tell. */
export interface Holder {
  /** Readable: program, host, pid, or what the caller said. `unknown` for a holder that is not Holdfast's. */
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly fencingToken?: bigint;
  /** Of a read-write lock. */
  readonly mode?: "read" | "write";
  /** Of a semaphore. */
  readonly permits?: number;
  /** What is left of the TTL, ms; absent: it has none or it is not known. */
  readonly remainingMs?: number;
  /**
   * Callers that wait in memory in the holder's process, behind the holder, by its last renewal: at most a third of the TTL old while
   * renewals succeed. Absent: none are reported, or the answer is of the `Locks` that they wait in, which has them in `waiters`.
   */
  readonly localWaiters?: number;
}

/** A place in the queue. */
export interface Waiter {
  readonly owner: string;
  /** When it began to wait, in ms since 1970; absent: the engine does not know. */
  readonly since?: number;
  /** From 0. */
  readonly position: number;
}

/** What one server says of one lock. */
export interface NodeView {
  readonly node: string;
  /** Of a latch: it is not open yet. null: it did not say. */
  readonly held: boolean | null;
  /** Of a node of a quorum: who has its vote. */
  readonly owner?: string;
  /** The number that it gave; the lease has the one that a majority gave. */
  readonly fencingToken?: bigint;
  readonly remainingMs?: number;
  readonly waiterCount?: number;
  /** Why it did not say, or does not count. */
  readonly error?: string;
}

/** What the engine says of one lock. */
export interface LockState {
  readonly key: string;
  readonly kind: LockKind;
  /** How many may hold it at once; Infinity of a read-write lock, for its readers. Of a latch the count that it began with. */
  readonly limit: number;
  /** Of a latch: how many counts are left; 0: it is open. */
  readonly remaining?: number;
  /** Empty: it is free, or a latch. Else in the order of their ends. */
  readonly holders: readonly Holder[];
  /** The first 100, in order. */
  readonly waiters: readonly Waiter[];
  /**
   * Callers that wait: those on the engine, which are exact, and {@link Holder.localWaiters} of the holder. A process with hand-over has one
   * caller at most on the engine for each key, and the others wait in its memory. The `Locks` that the callers wait in counts all of them
   * exactly. Other processes do not see the callers in the memory of a process that does not hold the lock.
   */
  readonly waiterCount: number;
  /** What is left of the holder's TTL, or of a latch's, ms; null: free, or without expiry. */
  readonly remainingMs: number | null;
  /** First number of the newest grant that is in force; null: nobody holds the key, or on a node of a quorum as long as it is remembered. */
  readonly fencingToken: bigint | null;
  /** What each server says. */
  readonly nodes: readonly NodeView[];
  /** Safe to log: fencing tokens as decimal strings. */
  toJSON(): unknown;
}

/** Whether the lease with a fencing token holds its key. */
export type FenceState = "current" | "stale" | "unknown";

/** A change that {@link LockState} shows. The first event of a watch is a snapshot; `gone`: it is free now, or a latch has ended. */
export interface LockEvent {
  readonly type: "snapshot" | "changed" | "gone";
  readonly key: string;
  readonly state: LockState;
}

/** What one server says of its replication. */
export interface Replication {
  /** How far it has written, or followed, in bytes. */
  readonly offset: number;
  /** Of a primary: who follows it. */
  readonly replicas: readonly {
    readonly address: string;
    readonly isOnline: boolean;
    /** What it has not acknowledged yet. */
    readonly lagBytes: number;
    /** How long it has not been heard of, ms, to the second. */
    readonly sinceLastAckMs: number;
  }[];
  /** Of a replica: whether it is connected with its primary; null: it is a primary. */
  readonly isLinkUp: boolean | null;
  /** Of a primary with `min-replicas-to-write`: how many it counts for that at present; null: it takes writes without any. */
  readonly goodReplicas: number | null;
}

/** What one server says of itself, and our view of it. */
export interface NodeState {
  readonly node: string;
  readonly reachable: boolean;
  /** Round trip of the question, ms. */
  readonly latencyMs: number | null;
  readonly version: string | null;
  readonly role: string | null;
  /** null: it has none, or did not say. */
  readonly replication: Replication | null;
  readonly runId: string | null;
  /** By the server's wall clock: negative where that was put back by more since it was started. */
  readonly uptimeMs: number | null;
  /** The server's wall clock less ours, ms, within half a round trip. */
  readonly clockOffsetMs: number | null;
  /** Of a primary of Redis Cluster. */
  readonly cluster?: {
    /** What it says of the cluster: `ok` or `fail`; null: it did not say. */
    readonly state: string | null;
    /** How many slots it has. */
    readonly slots: number;
    /** Their addresses. */
    readonly replicas: readonly string[];
  };
  /** Whether grants by message were proved to reach us. */
  readonly notifications: "verified" | "unverified" | "unavailable";
  /** Why a node of a quorum does not vote, and for how long, ms, where that is known; null: it votes. */
  readonly quarantine: { readonly reason: string; readonly remainingMs: number | null } | null;
  readonly error: string | null;
}

function fencingTokenAsText<T extends { readonly fencingToken?: bigint }>(state: T): object {
  return { ...state, fencingToken: state.fencingToken?.toString() };
}

export type LockStateData = Omit<LockState, "toJSON">;

/** Whether there is anything of it but who waits: somebody who holds it, or a latch. */
export function exists({ holders, remaining }: LockStateData): boolean {
  return holders.length > 0 || remaining !== undefined;
}

/** The part of {@link LockState.waiterCount} that the holder reported. */
export function localWaitersOf(holders: readonly Holder[]): number {
  return holders.reduce((sum, { localWaiters = 0 }) => sum + localWaiters, 0);
}

/** Adds what makes a state safe to log, instead of what another state had for it. */
export function lockState(state: LockStateData & { readonly toJSON?: unknown }): LockState {
  const { toJSON: _, ...data } = state;
  return {
    ...data,
    toJSON: () => ({
      ...data,
      fencingToken: data.fencingToken?.toString() ?? null,
      holders: data.holders.map(fencingTokenAsText),
      nodes: data.nodes.map(fencingTokenAsText),
    }),
  };
}
