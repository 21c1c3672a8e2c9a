import type { LockMode } from "../../driver.ts";
import { lockState, type HeldKind, type Holder, type LockState } from "../../lock-state.ts";

/** A writer has the weight of the whole lock. */
const allShares = 2 ** 31;

/** The result of the function `inspect`. */
export interface StateRow {
  readonly key: string;
  readonly kind: HeldKind | null;
  readonly capacity: number | null;
  readonly holders: readonly HolderRow[] | null;
  /** The owners, in queue order. */
  readonly waiters: readonly string[] | null;
  readonly waiterCount: number;
}

/** A holder, as the functions of the schema describe it. */
export interface HolderRow {
  readonly owner: string;
  readonly reason: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
  readonly fencing: string;
  readonly weight: number;
  readonly remainingMs: number;
}

/** The share of its lock that a request takes. */
export function sharesOf(lockMode: LockMode | undefined): {
  kind: HeldKind;
  weight: number;
  capacity: number;
  anyLimit: boolean;
} {
  switch (lockMode?.kind) {
    case undefined:
      return { kind: "mutex", weight: 1, capacity: 1, anyLimit: false };
    case "read-write":
      return {
        kind: "read-write",
        weight: lockMode.mode === "read" ? 1 : allShares,
        capacity: allShares,
        anyLimit: false,
      };
    case "semaphore":
      return {
        kind: "semaphore",
        weight: lockMode.permits,
        capacity: lockMode.limit,
        anyLimit: lockMode.hasWaited === true,
      };
  }
}

export function stateOf(row: StateRow): LockState {
  const kind = row.holders || row.waiters ? (row.kind ?? "mutex") : "mutex";
  const holders = (row.holders ?? []).map((holder) => holderOf(kind, holder));
  const numbers = holders.map(({ fencingToken = 0n }) => fencingToken);
  return lockState({
    key: row.key,
    kind,
    limit: kind === "read-write" ? Infinity : kind === "semaphore" ? (row.capacity ?? 1) : 1,
    holders,
    waiters: (row.waiters ?? []).map((owner, position) => ({ owner, position })),
    waiterCount: row.waiterCount,
    remainingMs: holders.at(-1)?.remainingMs ?? null,
    fencingToken: numbers.length === 0 ? null : numbers.reduce((a, b) => (a > b ? a : b)),
    nodes: [{ node: "postgres", held: holders.length > 0 }],
  });
}

export function holderOf(
  kind: HeldKind,
  { owner, reason, labels, fencing, weight, remainingMs }: HolderRow,
): Holder {
  return {
    owner,
    ...(reason === null ? {} : { reason }),
    ...(labels === null ? {} : { labels }),
    fencingToken: BigInt(fencing),
    ...(kind === "read-write"
      ? { mode: weight === 1 ? "read" : "write" }
      : kind === "semaphore"
        ? { permits: weight }
        : {}),
    remainingMs: Math.max(0, Math.floor(remainingMs)),
  };
}
