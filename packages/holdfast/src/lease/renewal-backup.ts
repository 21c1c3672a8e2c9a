import type { Driver, Grant } from "../driver.ts";

/** A renewed lease, as a {@link RenewalBackup} needs it. */
export interface BackedLease {
  readonly key: string;
  readonly grant: Grant;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** The end of `maxHoldMs`, on the scale of `clock.now()`. */
  readonly endsAt: number;
}

/** Renews leases while the event loop of this thread is blocked. */
export interface RenewalBackup {
  /** Resolves when the backup is ready, or will not be ready soon. New leases wait for it. Undefined afterwards. */
  readonly starting: Promise<void> | undefined;
  /** Starts the renewals of a lease. The validity of its grant then counts the renewals of the backup, without the event loop. */
  add(lease: BackedLease): void;
  /** The end of the lease has changed. */
  update(lease: BackedLease): void;
  /** Ends the renewals of a lease. A request that is under way may still extend the grant, and never creates one. */
  remove(lease: BackedLease): void;
  close(): Promise<void>;
}

/** Starts a {@link RenewalBackup}: `watchdogThread` of `holdfast/watchdog-thread`. */
export interface RenewalBackupStarter {
  /** Called by `createLocks`. @throws {TypeError} the driver has an injected clock */
  start(driver: Driver): RenewalBackup;
}
