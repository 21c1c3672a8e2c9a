import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ApiError } from "../api/client.ts";
import type { Holder, Lock, PastHold } from "../api/types.ts";
import { rowOfKey } from "../live/live.ts";
import { usualOf } from "../live/usual.ts";
import { rowOf, type Row } from "../model/row.ts";
import { usePoll } from "../ui/use-poll.ts";

/** One lock, and its holds that this page has seen. Only the history of the service knows how they ended. */
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
      data === undefined
        ? rowOfKey(key)
        : rowOf(data, at, before?.key === key ? before : undefined, usualOf(key));
    if (data !== undefined && row.value !== undefined) record(seen.current.holds, row.value);
  }, [data, at, key]);
  return { row: row.value?.key === key ? row.value : undefined, seen: seen.current.holds, error, refresh };
}

/** Adds the result of one look at the lock: new holds, and the ends of former ones. */
function record(holds: PastHold[], { key, lock, at, since = at }: Row): void {
  const fresh = lock.holders
    .filter((holder) => !holds.some((hold) => isGrantOf(holder, hold)))
    .map(({ owner, fencingToken, reason, heldMs }): PastHold => ({
      key,
      owner,
      since: heldMs === undefined ? since : at - heldMs,
      until: null,
      ...(fencingToken !== undefined && { fencingToken }),
      ...(reason !== undefined && { reason }),
    }));
  const end = lock.kind === "mutex" ? Math.min(at, ...fresh.map((hold) => hold.since)) : at;
  holds.unshift(...fresh);
  holds.length = Math.min(holds.length, mostHolds);
  for (const [index, hold] of holds.entries()) {
    const isOver = hold.until === null && !lock.holders.some((holder) => isGrantOf(holder, hold));
    if (isOver) holds[index] = { ...hold, until: Math.max(hold.since, end) };
  }
}

function isGrantOf({ owner, fencingToken }: Holder, hold: PastHold): boolean {
  return hold.owner === owner && hold.fencingToken === fencingToken;
}
