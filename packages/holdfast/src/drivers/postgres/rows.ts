import {
  grantTimes,
  lockState,
  waitTimes,
  type HeldKind,
  type Holder,
  type LockState,
} from "../../lock-state.ts";
import { limitOf, modeOf } from "../store/shares.ts";

/** The result of the function `inspect`. */
export interface StateRow {
  readonly key: string;
  readonly kind: HeldKind | null;
  readonly capacity: number | null;
  readonly holders: readonly HolderRow[] | null;
  /** The owners, in queue order. */
  readonly waiters: readonly string[] | null;
  /** The tickets of {@link waiters}: the starts of the waits, µs since 1970; absent in a schema before version 5. */
  readonly tickets?: readonly string[] | null;
  /** The server's clock, ms since 1970; absent in a schema before version 5. */
  readonly now?: number;
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
  /** The server's clock, ms since 1970; absent in a schema of version 3. */
  readonly now?: number;
}

export function stateOf(row: StateRow): LockState {
  const kind = row.holders || row.waiters ? (row.kind ?? "mutex") : "mutex";
  const holders = (row.holders ?? []).map((holder) => holderOf(kind, holder));
  const numbers = holders.map(({ fencingToken = 0n }) => fencingToken);
  return lockState({
    key: row.key,
    kind,
    limit: limitOf(kind, row.capacity ?? 1),
    holders,
    waiters: (row.waiters ?? []).map((owner, position) => {
      return { owner, position, ...waitTimes(Number(row.tickets?.[position]), row.now ?? 0) };
    }),
    waiterCount: row.waiterCount,
    remainingMs: holders.at(-1)?.remainingMs ?? null,
    fencingToken: numbers.length === 0 ? null : numbers.reduce((a, b) => (a > b ? a : b)),
    nodes: [{ node: "postgres", held: holders.length > 0 }],
  });
}

export function holderOf(
  kind: HeldKind,
  { owner, reason, labels, fencing, weight, remainingMs, now }: HolderRow,
): Holder {
  return {
    owner,
    ...(reason === null ? {} : { reason }),
    ...(labels === null ? {} : { labels }),
    fencingToken: BigInt(fencing),
    ...modeOf(kind, weight),
    remainingMs: Math.max(0, Math.floor(remainingMs)),
    ...(now === undefined ? {} : grantTimes(BigInt(fencing), now)),
  };
}
