import type { Lease } from "holdfast";

import type { WatchedLease } from "./watched-lease.ts";

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
