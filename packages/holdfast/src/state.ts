/** Who holds or waits, as far as the engine can tell. */
export interface Holder {
  /** Readable: program, host, pid, or what the caller said. `unknown` for a holder that is not Holdfast's. */
  readonly owner: string;
  readonly reason?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly fencingToken?: bigint;
  /** What is left of the TTL, ms; absent: it has none or it is not known. */
  readonly remainingMs?: number;
}

/** A place in the queue. */
export interface Waiter {
  readonly owner: string;
  /** From 0. */
  readonly position: number;
}

/** What the engine says of one lock. */
export interface LockState {
  readonly key: string;
  readonly kind: "mutex";
  /** How many may hold it at once. */
  readonly limit: number;
  /** Empty: it is free. */
  readonly holders: readonly Holder[];
  /** The first 100, in order. */
  readonly waiters: readonly Waiter[];
  readonly waiterCount: number;
  /** What is left of the holder's TTL, ms; null: free, or without expiry. */
  readonly remainingMs: number | null;
  /** First number of the newest grant; null: none is remembered. */
  readonly fencingToken: bigint | null;
  /** What each server says, by its name. */
  readonly nodes: readonly { readonly node: string; readonly held: boolean }[];
  /** Safe to log: fencing tokens as decimal strings. */
  toJSON(): unknown;
}

/** A change that {@link LockState} shows. The first event of a watch is a snapshot; `gone`: it is free now. */
export interface LockEvent {
  readonly type: "snapshot" | "changed" | "gone";
  readonly key: string;
  readonly state: LockState;
}

/** What one server says of itself, and our view of it. */
export interface NodeState {
  readonly node: string;
  readonly reachable: boolean;
  /** Round trip of the question, ms. */
  readonly latencyMs: number | null;
  readonly version: string | null;
  readonly role: string | null;
  readonly runId: string | null;
  readonly uptimeMs: number | null;
  /** The server's wall clock less ours, ms, within half a round trip. */
  readonly clockOffsetMs: number | null;
  /** Whether grants by message were proved to reach us. */
  readonly notifications: "proved" | "unproved" | "unavailable";
  readonly error: string | null;
}

export type LockFacts = Omit<LockState, "toJSON">;

/** Adds what makes a state safe to log. */
export function lockState(facts: LockFacts): LockState {
  return {
    ...facts,
    toJSON: () => ({
      ...facts,
      fencingToken: facts.fencingToken?.toString() ?? null,
      holders: facts.holders.map((holder) => ({ ...holder, fencingToken: holder.fencingToken?.toString() })),
    }),
  };
}
