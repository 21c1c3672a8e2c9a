import type { LatchGeneration } from "./latch-generation.ts";

/** One `Latch` object of a caller. It belongs to the latch of its first call. */
export interface LatchHandle {
  readonly client: number;
  readonly count: number;
  readonly ttlMs: number;
  /** When the object was first used. */
  readonly firstUsedAt: number;
  /** The latches to which the object may belong; undefined: not known yet. */
  generations: readonly LatchGeneration[] | undefined;
}

/** A call in flight, or a call that the engine may still execute. */
export interface LatchCall {
  readonly handle: LatchHandle;
  /** The attempt that counts down; undefined: the call waits. */
  readonly attempt: string | undefined;
  readonly requestedAt: number;
  /** The remaining count of each latch when the call started. */
  readonly remainingBefore: ReadonlyMap<LatchGeneration, number>;
  /** The object belonged to no latch yet, so the call may create a latch. */
  readonly mayCreate: boolean;
  isSettled: boolean;
  settledAt: number;
  /** When the engine may execute the call at the latest. */
  latestAt: number;
}

/** The bounds that the engine keeps; times are ms. */
export interface LatchBounds {
  /** How long after its start a countdown, or after its reply a wait, may still be executed. */
  readonly latestMs: number;
  /** The engine loses no data. */
  readonly isDurable: boolean;
  /** A waiter that stops waiting removes its queue entry. */
  readonly dequeuesOnTimeout: boolean;
  /** How soon after the end of a latch its waiters return, and since when this bound applies. */
  openBound(): { readonly since: number; readonly ms: number };
}
