import type { LockState } from "../../lock-state.ts";
import { textOf, type Row } from "./client.ts";
import { stateOf } from "./rows.ts";

/** The states of locks, by the results of the procedure `states` for keys that include these. */
export function statesOf(keys: readonly string[], results: readonly Row[][]): LockState[] {
  const [locks, holders, waiters] = [0, 1, 2].map((index) => byKey(results[index] ?? []));
  return keys.map((key) =>
    stateOf({
      key,
      lock: locks?.get(key)?.[0],
      holders: holders?.get(key) ?? [],
      waiters: waiters?.get(key) ?? [],
    }),
  );
}

function byKey(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = textOf(row["k"]);
    const group = groups.get(key);
    if (group) {
      group.push(row);
    } else {
      groups.set(key, [row]);
    }
  }
  return groups;
}
