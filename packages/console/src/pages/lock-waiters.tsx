import type { Owner } from "../api/types.ts";
import { now } from "../live/live.ts";
import { formatTicking } from "../model/duration.ts";
import type { Row } from "../model/row.ts";
import { hrefOf } from "../router.ts";
import { OwnerName } from "../ui/parts.tsx";

interface Place {
  readonly position: number;
  readonly owner: string;
  readonly waitedMs: number | undefined;
  /** Callers of the same owner that follow each other. */
  readonly count: number;
}

/** The waiters in order. Callers of one owner that follow each other are one line. */
export function WaitersPanel({ row, owners }: { row: Row; owners: readonly Owner[] }) {
  const { lock, at } = row;
  const places = placesOf(row, Math.max(0, now.value - at), owners);
  const local = localWaiters(row, owners);
  const unnamed = lock.waiterCount - lock.waiters.length - local.reduce((sum, { count }) => sum + count, 0);
  return (
    <section class="panel" data-testid="waiters">
      <h2>
        Waiters <span class="num muted">{lock.waiterCount}</span>
      </h2>
      {lock.waiterCount === 0 && (
        <p class="muted">No waiter: the next caller gets the lock as soon as it is free.</p>
      )}
      {lock.waiterCount > 0 && (
        <ol class="waiters">
          {places.map(({ position, owner, waitedMs, count }) => (
            <li key={position}>
              <span class="place num">{position + 1}</span>
              <a href={hrefOf("owners", { owner })}>
                <OwnerName owner={owner} />
              </a>
              {count > 1 && <span class="more num">×{count}</span>}
              <span class="num waited">{waitedMs === undefined ? "" : formatTicking(waitedMs)}</span>
            </li>
          ))}
          {local.map(({ owner, count, oldestMs }) => (
            <li key={`local ${owner}`}>
              <span class="place">·</span>
              <a href={hrefOf("owners", { owner })}>
                <OwnerName owner={owner} />
              </a>
              <span class="muted in-memory">{count} in its memory</span>
              <span class="num waited">{oldestMs === undefined ? "" : formatTicking(oldestMs)}</span>
            </li>
          ))}
          {unnamed > 0 && (
            <li class="muted">
              <span class="place">·</span>
              {unnamed} more, not named by the engine
            </li>
          )}
        </ol>
      )}
    </section>
  );
}

/** Some engines do not know the waits of their queues. The processes of the waiters report the oldest wait of each. */
function placesOf({ key, lock }: Row, age: number, owners: readonly Owner[]): Place[] {
  const reported = new Map(
    owners.map((one) => [one.owner, one.waits.find((wait) => wait.key === key)?.oldestMs]),
  );
  const places: Place[] = [];
  for (const { owner, position, waitedMs } of lock.waiters) {
    const last = places.at(-1);
    if (last?.owner === owner) {
      places[places.length - 1] = { ...last, count: last.count + 1 };
      continue;
    }
    const waited = waitedMs ?? reported.get(owner);
    places.push({ position, owner, waitedMs: waited === undefined ? undefined : waited + age, count: 1 });
  }
  return places;
}

/** Callers in the memory of processes, which the engine's queue does not contain. */
function localWaiters(
  { lock, key }: Row,
  owners: readonly Owner[],
): { owner: string; count: number; oldestMs?: number | undefined }[] {
  const reported = owners.flatMap(({ owner, holds, waits }) => {
    const count = holds.find((hold) => hold.key === key)?.localWaiters ?? 0;
    const oldestMs = waits.find((wait) => wait.key === key)?.oldestMs;
    return count > 0 ? [{ owner, count, oldestMs }] : [];
  });
  if (reported.length > 0) return reported;
  return lock.holders.flatMap(({ owner, localWaiters: count = 0, localWaitMs: oldestMs }) =>
    count > 0 ? [{ owner, count, oldestMs }] : [],
  );
}
