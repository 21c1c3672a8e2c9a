import type { LockMode } from "../../driver.ts";
import type { HeldKind, Holder } from "../../lock-state.ts";

/** A writer has the weight of the whole lock. */
const allShares = 2 ** 31;

/** The share of its lock that a request takes. Holders share a lock while the sum of their weights is at most the capacity. */
export interface Shares {
  readonly kind: HeldKind;
  readonly weight: number;
  readonly capacity: number;
  /** The request accepts the limit in force, if that limit suffices for its permits. */
  readonly anyLimit: boolean;
}

export function sharesOf(lockMode: LockMode | undefined): Shares {
  switch (lockMode?.kind) {
    case undefined:
      return { kind: "mutex", weight: 1, capacity: 1, anyLimit: false };
    case "read-write": {
      const weight = lockMode.mode === "read" ? 1 : allShares;
      return { kind: "read-write", weight, capacity: allShares, anyLimit: false };
    }
    case "semaphore": {
      const { permits, limit, hasWaited = false } = lockMode;
      return { kind: "semaphore", weight: permits, capacity: limit, anyLimit: hasWaited };
    }
  }
}

/** How the holder of a share is shown. */
export function modeOf(kind: HeldKind, weight: number): Pick<Holder, "mode" | "permits"> {
  switch (kind) {
    case "mutex":
      return {};
    case "read-write":
      return { mode: weight === 1 ? "read" : "write" };
    case "semaphore":
      return { permits: weight };
  }
}

/** The limit that `inspect` shows. @param capacity the present or last capacity of the row */
export function limitOf(kind: HeldKind, capacity: number): number {
  return { mutex: 1, "read-write": Infinity, semaphore: capacity }[kind];
}
