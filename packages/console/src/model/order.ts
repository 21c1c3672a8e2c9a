import { leftMs, oldestWaitMs, stateAt, type Row } from "./row.ts";
import type { StateWord } from "./states.ts";

/** The sort orders of the locks. */
const orders = ["key", "kind", "holder", "held", "left", "waiting", "state"] as const;
export type Order = (typeof orders)[number];

/** The order as the address has it: `-held` is the longest hold first. */
export interface Sort {
  readonly by: Order;
  readonly isDescending: boolean;
}

/** The states that need a look come first. The others are equal, so that the key orders them. */
const severity: Readonly<Record<StateWord, number>> = {
  foreign: 0,
  "no expiry": 1,
  late: 2,
  "held long": 3,
  free: 4,
  held: 4,
  latch: 4,
};

export function parseSort(text: string | null): Sort {
  const isDescending = text?.startsWith("-") === true;
  const name = isDescending ? text?.slice(1) : text;
  return { by: orders.find((order) => order === name) ?? "state", isDescending };
}

export function formatSort({ by, isDescending }: Sort): string | undefined {
  return by === "state" && !isDescending ? undefined : `${isDescending ? "-" : ""}${by}`;
}

/** The order after a press on the heading of a column. The numbers begin with the largest. */
export function nextSort(present: Sort, by: Order): Sort {
  if (present.by === by) return { by, isDescending: !present.isDescending };
  return { by, isDescending: by === "held" || by === "waiting" };
}

export function sortRows(rows: readonly Row[], { by, isDescending }: Sort, now: number): Row[] {
  const sign = isDescending ? -1 : 1;
  const compare = comparisons[by];
  return rows.toSorted((a, b) => sign * compare(a, b, now) || compareText(a.sortKey, b.sortKey));
}

const comparisons: Readonly<Record<Order, (a: Row, b: Row, now: number) => number>> = {
  key: (a, b) => compareText(a.sortKey, b.sortKey),
  kind: (a, b) => compareText(a.lock.kind, b.lock.kind),
  holder: (a, b) => compareText(a.lock.holders[0]?.owner ?? "", b.lock.holders[0]?.owner ?? ""),
  held: (a, b) => (b.since ?? Infinity) - (a.since ?? Infinity) || 0,
  left: (a, b, now) => (leftMs(a, now) ?? Infinity) - (leftMs(b, now) ?? Infinity) || 0,
  waiting: (a, b, now) =>
    a.lock.waiterCount - b.lock.waiterCount || (oldestWaitMs(a, now) ?? 0) - (oldestWaitMs(b, now) ?? 0),
  state: (a, b, now) => severity[stateAt(a, now)] - severity[stateAt(b, now)],
};

/** Compares by code units, because a comparison by language is ten times as slow. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
