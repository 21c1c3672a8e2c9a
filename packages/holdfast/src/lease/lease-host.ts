import type { Driver, HolderReport, LockMode } from "../driver.ts";
import type { LossReason } from "../errors.ts";
import type { ResolvedAcquire } from "../options.ts";
import type { Clock } from "../runtime/clock.ts";
import type { LeaseHandle } from "./lease-handle.ts";
import type { Watchdog } from "./watchdog.ts";

/** The surroundings of a lease in its process. `State` is the lease's state. */
export interface LeaseHost<State> {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly owner: string;
  /** The number of the `Locks` in diagnostics. */
  readonly instance: number;
  /** Releases the lease: hands it over to the next local waiter, or releases its grant at the engine. */
  release(lease: State): Promise<boolean>;
  /** Releases the grant at the engine after `ms`, or leaves it to its TTL if the `Locks` is closed before. */
  releaseAfter(lease: State, ms: number): void;
  /** Declares every lease on the grant with this token lost. */
  markLost(token: string, reason: LossReason): void;
  /** Removes a lease that ended without a release from its queue, because the lease can no longer be handed over. */
  leaseEnded(lease: State): void;
  /** How long a grant may be handed over in memory, ms; 0: never. */
  readonly handoverMs: number;
  /** Whether a release of the lease may hand it over in memory. Once false, it stays false. */
  mayHandOver(lease: State): boolean;
  /**
   * How many callers wait in memory for this lease, and for how long, as a report to the engine.
   * Undefined: none wait, and the engine has no earlier report to correct.
   */
  localWaitersToReport(lease: State): Pick<HolderReport, "localWaiters" | "localWaitMs"> | undefined;
}

/** The options of an acquire that stay in force after the grant. */
export type LeaseStateOptions = Pick<
  ResolvedAcquire,
  "ttlMs" | "renew" | "maxHoldMs" | "ifLost" | "info" | "trace"
> & {
  readonly minHoldMs?: number;
  /** Selects the local queue of the lease. */
  readonly lockMode?: LockMode | undefined;
  /** The lease was adopted. It may have been adopted more than once, so other leases may use the same grant. */
  readonly isAdopted?: boolean;
};

/** A lease's state, and the handle for its caller. */
export interface CreatedLease<State> {
  readonly state: State;
  readonly lease: LeaseHandle;
}
