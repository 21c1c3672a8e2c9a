import type { Lease } from "holdfast";

import type { WatchedLease } from "./holdings.ts";

/** A lease of one key or of several. */
export type WatchedLeases = WatchedLease & Partial<Pick<Lease, "keys" | "fencingTokens">>;

const knownKeyLeases = new WeakMap<WatchedLeases, readonly WatchedLease[]>();

/** What a lease is on each of its keys. */
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

/** It is lost if any key is: what is left of it is left of each. */
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
