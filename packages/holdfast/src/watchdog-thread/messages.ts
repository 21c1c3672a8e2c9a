/** The data with which the thread starts. */
export interface ThreadData {
  readonly url: string;
  /** Options of `connect`. */
  readonly connection: Readonly<Record<string, unknown>>;
  /** The last time at which the event loop of the leases ran: one value, monotonic ms. */
  readonly heartbeat: SharedArrayBuffer;
  readonly maxBlockedMs: number;
}

/** A message to the thread. */
export type ThreadMessage =
  | { readonly type: "block"; readonly block: SharedArrayBuffer }
  | { readonly type: "add"; readonly leases: readonly ThreadLease[] }
  | { readonly type: "close" };

/**
 * A message of the thread. `ready`: it can renew leases. `unknown-lease`: its engine does not have a lease of the process, and has had
 * none before, so it is probably another engine than that of the driver.
 */
export type ThreadReport =
  { readonly type: "ready" } | { readonly type: "unknown-lease"; readonly key: string };

/** A lease for the thread. It is secret, because `token` is the token of the grant. */
export interface ThreadLease {
  readonly block: number;
  readonly index: number;
  /** The number of the lease in its slot. */
  readonly lease: number;
  readonly key: string;
  readonly token: string;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
}
