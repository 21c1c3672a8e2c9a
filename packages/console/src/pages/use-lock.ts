import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ApiError } from "../api/client.ts";
import type { Lock, PastHold } from "../api/types.ts";
import { rowOfKey } from "../live/live.ts";
import { rowOf, type Row } from "../model/row.ts";
import { usePoll } from "../ui/use-poll.ts";

/** One lock, and its holds that this page has seen. */
export interface OneLock {
  readonly row: Row | undefined;
  readonly seen: readonly PastHold[];
  readonly error: ApiError | undefined;
  readonly refresh: () => void;
}

const intervalMs = 1_000;
const mostHolds = 50;

/** Reads one lock each second, so that renewals show. */
export function useLock(key: string): OneLock {
  const { data, error, at, refresh } = usePoll<Lock>("v1/lock", { key }, intervalMs);
  const row = useSignal<Row | undefined>(rowOfKey(key));
  const seen = useRef<{ readonly key: string; readonly holds: PastHold[] }>({ key, holds: [] });
  if (seen.current.key !== key) seen.current = { key, holds: [] };
  useEffect(() => {
    const before = row.peek() ?? rowOfKey(key);
    row.value =
      data === undefined ? rowOfKey(key) : rowOf(data, at, before?.key === key ? before : undefined);
    if (data !== undefined && row.value !== undefined) record(seen.current.holds, row.value);
  }, [data, at, key]);
  return { row: row.value?.key === key ? row.value : undefined, seen: seen.current.holds, error, refresh };
}

/** Adds what a look at the lock shows: new holds, and the ends of former ones. */
function record(holds: PastHold[], { key, lock, at, since = at }: Row): void {
  const present = new Set(lock.holders.map(({ owner, fencingToken }) => `${owner} ${fencingToken}`));
  for (const [index, hold] of holds.entries()) {
    const isPresent = present.delete(`${hold.owner} ${hold.fencingToken}`);
    if (!isPresent && hold.until === null) holds[index] = { ...hold, until: at, end: "unknown" };
  }
  for (const { owner, fencingToken, reason, heldMs } of lock.holders) {
    if (!present.has(`${owner} ${fencingToken}`)) continue;
    const from = heldMs === undefined ? since : at - heldMs;
    holds.unshift({
      key,
      owner,
      since: from,
      until: null,
      ...(fencingToken !== undefined && { fencingToken }),
      ...(reason !== undefined && { reason }),
    });
  }
  holds.length = Math.min(holds.length, mostHolds);
}
