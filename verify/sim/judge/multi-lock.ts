import type { Lease } from "holdfast";

import type { WatchedLease } from "./holdings.ts";

/** A lease of one key or of several. */
export type WatchedWhole = WatchedLease & Partial<Pick<Lease, "keys" | "fencingTokens">>;

const known = new WeakMap<WatchedWhole, readonly WatchedLease[]>();

/** What a lease is on each of its keys. */
export function partsOf(lease: WatchedWhole): readonly WatchedLease[] {
  const { keys = [] } = lease;
  if (keys.length < 2) {
    return [lease];
  }
  let parts = known.get(lease);
  if (!parts) {
    parts = keys.map((key) => new Part(lease, key));
    known.set(lease, parts);
  }
  return parts;
}

/** It is lost if any key is: what is left of it is left of each. */
class Part implements WatchedLease {
  readonly key: string;
  readonly #lease: WatchedWhole;

  constructor(lease: WatchedWhole, key: string) {
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
