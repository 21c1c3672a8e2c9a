/** The mode in which a caller requests a key. Plain JSON. */
export type LockMode =
  | { readonly kind: "reader" }
  /** @param downgradeAtMs when the writer downgrades, after the grant */
  | { readonly kind: "writer"; readonly downgradeAtMs?: number }
  | { readonly kind: "permits"; readonly permits: number }
  /** All these keys, in the order in which the caller names the keys. */
  | { readonly kind: "several"; readonly keys: readonly string[] }
  | Nested
  /** A candidate that leads until it resigns. */
  | { readonly kind: "candidate" };

/** A reentrant lock. */
export interface Nested {
  readonly kind: "nested";
  /** All leases of the client in this session are one hold. None: the surrounding `withLock` determines the hold. */
  readonly session?: string;
  /** How many nested entries follow, each inside the previous one, and how many branches enter at the same time. */
  readonly depth: number;
  readonly branches: number;
}

/** The weight of a mutex and of a writer, which leave no capacity for another holder. */
export const allReaders: number = 2 ** 31;

/** How much of a key's capacity a mode uses. The holders at one time never use more than the capacity. */
export function weightOf(mode: LockMode | undefined): number {
  if (mode?.kind === "reader") {
    return 1;
  }
  return mode?.kind === "permits" ? mode.permits : allReaders;
}

/** The requested keys, in sorted order. */
export function keysOf({ key, mode }: { readonly key: string; readonly mode?: LockMode }): readonly string[] {
  return mode?.kind === "several" ? [...new Set(mode.keys)].sort() : [key];
}

/** Whether the mode is that of a semaphore. */
export function hasPermits(mode: LockMode | undefined): boolean {
  return mode?.kind === "permits";
}

/** Whether several holders may share the key, each with its own grant and number. */
export function isShared(mode: LockMode | undefined): boolean {
  return mode?.kind === "reader" || mode?.kind === "writer" || mode?.kind === "permits";
}
