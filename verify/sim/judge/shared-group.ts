import type { WatchedLease } from "./holdings.ts";

/** Callers of this name may have leases on one grant: repeats of an attempt, or entries of a nest. The last release ends it. */
export interface SharedGroup {
  readonly name: string;
}

/** Repeats share a grant where they ask with the same `Locks`. */
export function attemptKey(client: number, attemptId: string): string {
  return `client ${client}, ${attemptId}`;
}

export function grantKey(sharing: SharedGroup | undefined, { fencingToken }: WatchedLease): string {
  return `${sharing?.name} ${fencingToken}`;
}
