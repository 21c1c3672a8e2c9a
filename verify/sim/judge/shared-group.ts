import type { WatchedLease } from "./watched-lease.ts";

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
