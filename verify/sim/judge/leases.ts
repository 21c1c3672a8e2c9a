import type { Lease } from "holdfast";

import type { GrantRun } from "../run/grant-runs.ts";

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

/** The members of a lease that the judge reads. */
export type WatchedLease = Pick<Lease, "key" | "fencingToken" | "remainingMs" | "signal">;

/**
 * Callers with this name may have leases on one grant: repeats of an attempt, or nested entries of a reentrant lock. The last release
 * ends the grant.
 */
export interface SharedGroup {
  readonly name: string;
}

/** Names an attempt of one client, because only repeats with the same `Locks` share a grant. */
export function attemptKey(client: number, attemptId: string): string {
  return `client ${client}, ${attemptId}`;
}

export function grantKey(group: SharedGroup | undefined, { fencingToken }: WatchedLease): string {
  return `${group?.name} ${fencingToken}`;
}

/** A lease of one key or of several. */
export type WatchedLeases = WatchedLease & Partial<Pick<Lease, "keys" | "fencingTokens">>;

const knownKeyLeases = new WeakMap<WatchedLeases, readonly WatchedLease[]>();

/** One view of the lease for each of its keys. */
export function keyLeasesOf(lease: WatchedLeases): readonly WatchedLease[] {
  const { keys = [] } = lease;
  if (keys.length < 2) {
    return [lease];
  }
  let keyLeases = knownKeyLeases.get(lease);
  if (!keyLeases) {
    keyLeases = keys.map((key) => new KeyLease(lease, key));
    knownKeyLeases.set(lease, keyLeases);
  }
  return keyLeases;
}

/** One key of a lease of several keys. Its remaining time is that of the whole lease, because the loss of one key loses all keys. */
class KeyLease implements WatchedLease {
  readonly key: string;
  readonly #lease: WatchedLeases;

  constructor(lease: WatchedLeases, key: string) {
    this.#lease = lease;
    this.key = key;
  }

  get fencingToken(): bigint {
    return this.#lease.fencingTokens?.get(this.key) ?? 0n;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  remainingMs(): number {
    return this.#lease.remainingMs();
  }
}
