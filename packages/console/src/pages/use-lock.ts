import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ApiError } from "../api/client.ts";
import type { Holder, Lock, PastHold } from "../api/types.ts";
import { rowOfKey } from "../live/live.ts";
import { usualOf } from "../live/usual.ts";
import { rowOf, type Row } from "../model/row.ts";
import { usePoll } from "../ui/use-poll.ts";

/** One lock, and its holds that this page has seen. */
export interface OneLock {
  readonly row: Row | undefined;
  readonly seen: readonly SeenHold[];
  readonly error: ApiError | undefined;
  readonly refresh: () => void;
}

/** A hold that the page has seen. */
interface SeenHold extends PastHold {
  /** When the hold expires without a further renewal. Undefined: not known. */
  readonly expiresAt: number | undefined;
}

const intervalMs = 1_000;
const mostHolds = 50;

/** Reads one lock each second, so that renewals show. */
export function useLock(key: string): OneLock {
  const { data, error, at, refresh } = usePoll<Lock>("v1/lock", { key }, intervalMs);
  const row = useSignal<Row | undefined>(rowOfKey(key));
  const seen = useRef<{ readonly key: string; readonly holds: SeenHold[] }>({ key, holds: [] });
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
function record(holds: SeenHold[], { key, lock, at, since = at }: Row): void {
  const isKnown = ({ owner, fencingToken }: Holder): boolean =>
    holds.some((hold) => hold.owner === owner && hold.fencingToken === fencingToken);
  const fresh = lock.holders
    .filter((holder) => !isKnown(holder))
    .map(({ owner, fencingToken, reason, heldMs }): SeenHold => ({
      key,
      owner,
      since: heldMs === undefined ? since : at - heldMs,
      until: null,
      expiresAt: undefined,
      ...(fencingToken !== undefined && { fencingToken }),
      ...(reason !== undefined && { reason }),
    }));
  const end = lock.kind === "mutex" ? Math.min(at, ...fresh.map((hold) => hold.since)) : at;
  holds.unshift(...fresh);
  holds.length = Math.min(holds.length, mostHolds);
  for (const [index, hold] of holds.entries()) {
    if (hold.until === null) holds[index] = seenAgain(hold, lock, at, end);
  }
}

/** A present hold after another look: its expiry, or its end. */
function seenAgain(hold: SeenHold, lock: Lock, at: number, end: number): SeenHold {
  const holder = lock.holders.find(
    ({ owner, fencingToken }) => hold.owner === owner && hold.fencingToken === fencingToken,
  );
  if (holder === undefined) {
    const isReleased = end < (hold.expiresAt ?? 0);
    return { ...hold, until: Math.max(hold.since, end), end: isReleased ? "released" : "unknown" };
  }
  const remainingMs = holder.remainingMs ?? (lock.kind === "mutex" ? lock.remainingMs : null);
  return { ...hold, expiresAt: remainingMs === null ? undefined : at + remainingMs };
}
