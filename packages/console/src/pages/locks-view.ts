import { computed, signal } from "@preact/signals";

import { now, rows } from "../live/live.ts";
import { parseFilter } from "../model/filter.ts";
import { parseSort, sortRows } from "../model/order.ts";
import { isLong, isStale, oldestWaitMs, type Row } from "../model/row.ts";
import { treeLines, type TreeLine } from "../model/tree.ts";
import { route, setParams } from "../router.ts";

/** The state of the page of locks. Its address has the filter, the order, the groups and the cursor. */

/** Between the prefixes of open groups in the address. */
const separator = "\n";

export const filterText = computed(() => route.value.params.get("q") ?? "");
export const filter = computed(() => parseFilter(filterText.value));
export const sort = computed(() => parseSort(route.value.params.get("sort")));
export const isTree = computed(() => route.value.params.get("view") === "tree");
const openGroups = computed(
  () => new Set(route.value.params.getAll("open").flatMap((text) => text.split(separator))),
);

/** The rows as they were shown when the pointer entered the table. */
const held = signal<readonly Row[] | undefined>(undefined);
export const selected = signal<ReadonlySet<string>>(new Set());
export const cursor = signal<string | undefined>(undefined);

const wanted = computed(() => {
  const { matches } = filter.value;
  const time = now.value;
  return sortRows(
    rows.value.filter((row) => matches(row, time)),
    sort.value,
    time,
  );
});

/** The rows that the filter shows. Under the pointer they keep their places, and an ended hold stays as a free lock. */
export const shown = computed((): readonly Row[] => {
  const places = held.value;
  if (places === undefined) return wanted.value;
  const present = new Map(rows.value.map((row) => [row.key, row]));
  return places.map((place) => present.get(place.key) ?? freed(place));
});

/** The numbers of all locks, whatever the filter shows. */
export const totals = computed(() => {
  const total = { held: 0, waiting: 0, stale: 0, long: 0, oldest: undefined as Row | undefined };
  for (const row of rows.value) {
    if (row.lock.holders.length > 0) total.held += 1;
    if (isStale(row)) total.stale += 1;
    if (isLong(row, row.at)) total.long += 1;
    total.waiting += row.lock.waiterCount;
    const waited = oldestWaitMs(row, row.at);
    if (waited !== undefined && row.at - waited < startOf(total.oldest)) total.oldest = row;
  }
  return total;
});

/** Since when the oldest waiter of a lock waits. */
function startOf(row: Row | undefined): number {
  return row === undefined ? Infinity : row.at - (row.oldestWaitMs ?? 0);
}

/** How many rows wait for the pointer to leave. */
export const newCount = computed(() => {
  const places = held.value;
  if (places === undefined) return 0;
  const known = new Set(places.map(({ key }) => key));
  return wanted.value.filter(({ key }) => !known.has(key)).length;
});

export const lines = computed((): readonly TreeLine[] =>
  isTree.value
    ? treeLines(shown.value, (prefix) => openGroups.value.has(prefix))
    : shown.value.map((row) => ({ type: "lock" as const, row, depth: 0, label: row.key })),
);

export function idOf(line: TreeLine): string {
  return line.type === "lock" ? line.row.key : `${line.prefix}*`;
}

export function holdRows(isHeld: boolean): void {
  held.value = isHeld ? wanted.peek() : undefined;
}

export function toggleGroup(prefix: string): void {
  const open = new Set(openGroups.value);
  if (!open.delete(prefix)) open.add(prefix);
  setParams({ open: [...open].filter((each) => each !== "").join(separator) });
}

export function toggleSelected(key: string): void {
  const next = new Set(selected.value);
  if (!next.delete(key)) next.add(key);
  selected.value = next;
}

/** Moves the cursor by rows. */
export function moveCursor(by: number): number {
  const all = lines.value;
  const at = all.findIndex((line) => idOf(line) === cursor.value);
  const next = Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by));
  const line = all[next];
  if (line !== undefined) placeCursor(idOf(line));
  return next;
}

let saving: ReturnType<typeof setTimeout> | undefined;
const saveAfterMs = 500;

/** Browsers refuse frequent changes of the address, so the address follows later. */
export function placeCursor(id: string | undefined): void {
  cursor.value = id;
  clearTimeout(saving);
  saving = setTimeout(() => {
    if (route.peek().page === "locks") setParams({ at: id });
  }, saveAfterMs);
}

function freed(row: Row): Row {
  const lock = { ...row.lock, holders: [], waiters: [], waiterCount: 0, remainingMs: null };
  return { ...row, lock, state: "free", since: undefined, oldestWaitMs: undefined };
}
