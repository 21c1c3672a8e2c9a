import type { GrantRun } from "../run/grant-runs.ts";
import type { SharedGroup } from "./shared-group.ts";
import type { WatchedLease } from "./watched-lease.ts";

/** One lease, from its grant until its caller releases it. The lease counts while it is valid by the clocks of its client. */
export interface TrackedLease {
  readonly client: number;
  readonly lease: WatchedLease;
  readonly since: number;
  /** The earliest time from which its shortest hold counts. A process that paused may have received the grant long before its caller. */
  readonly heldFrom: number;
  readonly weight: number;
  readonly ttlMs: number;
  readonly sharedGroup: SharedGroup | undefined;
  readonly grantRun: GrantRun;
  /** The largest capacity at the time of the grant. This lease and all earlier leases together use no more. */
  readonly capacity: number;
}
