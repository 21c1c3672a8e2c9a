/** As what a caller asks for a key. Plain JSON. */
export type LockMode =
  | { readonly kind: "reader" }
  /** @param downgradeAtMs when it lets readers in, after the grant */
  | { readonly kind: "writer"; readonly downgradeAtMs?: number }
  | { readonly kind: "permits"; readonly permits: number }
  /** Every one of these keys, in the order in which they are named. */
  | { readonly kind: "several"; readonly keys: readonly string[] }
  | Nested
  /** A candidate, who leads until it resigns. */
  | { readonly kind: "candidate" };

/** A reentrant lock. */
export interface Nested {
  readonly kind: "nested";
  /** Of the client; all its leases by that name are one hold. None: who asks is told by the `withLock` around it. */
  readonly session?: string;
  /** How many times it is entered again inside, one in the other, and by how many at the same time. */
  readonly depth: number;
  readonly branches: number;
}

/** A mutex and a writer leave no room for anybody. */
export const allReaders: number = 2 ** 31;

/** How much of a key's room it takes: what holds it at the same time is never more than its limit. */
export function weightOf(mode: LockMode | undefined): number {
  if (mode?.kind === "reader") {
    return 1;
  }
  return mode?.kind === "permits" ? mode.permits : allReaders;
}

/** The keys that are asked for, in sorted order. */
export function keysOf({ key, mode }: { readonly key: string; readonly mode?: LockMode }): readonly string[] {
  return mode?.kind === "several" ? [...new Set(mode.keys)].sort() : [key];
}

/** Of a semaphore. */
export function hasPermits(mode: LockMode | undefined): boolean {
  return mode?.kind === "permits";
}

/** Several may have it at once, each by a grant and a number of its own. */
export function isShared(mode: LockMode | undefined): boolean {
  return mode?.kind === "reader" || mode?.kind === "writer" || mode?.kind === "permits";
}
