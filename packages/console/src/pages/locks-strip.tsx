import type { Nodes } from "../api/types.ts";
import { isListed, now } from "../live/live.ts";
import { brokenLately } from "../model/broken.ts";
import { formatTicking, formatTime, grouped } from "../model/duration.ts";
import { isLongWait, oldestWaitMs, type Row } from "../model/row.ts";
import { hrefOf } from "../router.ts";
import { Stat } from "../ui/parts.tsx";
import { useHistory } from "../ui/use-history.ts";
import { usePoll } from "../ui/use-poll.ts";
import * as view from "./locks-view.ts";

/** The counts of all locks, above their table. */
export function Strip() {
  const { held, waiting, stale, long, oldest } = view.totals.value;
  const nodes = usePoll<Nodes>("v1/nodes", {}, 10_000).data?.nodes;
  const up = nodes?.filter(({ reachable, quarantine }) => reachable && quarantine === null).length ?? 0;
  return (
    <>
      <dl class="strip">
        <Stat label="Held">{isListed.value ? grouped(held) : "–"}</Stat>
        <Stat label="Waiting">
          <Count value={waiting} filter="waiters>0" />
        </Stat>
        <OldestWait row={oldest} />
        <Stat label="Stale" isAlarm={stale > 0}>
          <Count value={stale} filter="stale" />
        </Stat>
        <Stat label="Held long" isWarning={long > 0}>
          <Count value={long} filter="long" />
        </Stat>
        <LastHour />
        {nodes !== undefined && (
          <Stat label="Nodes up" isAlarm={up < nodes.length}>
            <a href={hrefOf("nodes")}>
              {up} of {nodes.length}
            </a>
          </Stat>
        )}
      </dl>
      <p class="visually-hidden" aria-live="polite">
        {held} held, {waiting} waiting, {stale} stale, {long} held long
      </p>
    </>
  );
}

/** A number of locks, with a link to them. */
function Count({ value, filter }: { value: number; filter: string }) {
  if (value > 0) return <a href={hrefOf("locks", { q: filter })}>{grouped(value)}</a>;
  return <>{isListed.value ? "0" : "–"}</>;
}

/** The holds of the last hour that did not end by a release. */
function LastHour() {
  const { data } = useHistory({}, 10_000);
  if (data?.lostLastHour === undefined) return null;
  const { lostLastHour: lost, knownSince, holds } = data;
  const broken = brokenLately(holds, now.value).length;
  return (
    <>
      <Stat
        label="Lost, last hour"
        title={`Holds that expired, as far as the service has watched: since ${formatTime(knownSince)}`}
        isAlarm={lost > 0}
      >
        {grouped(lost)}
      </Stat>
      {broken > 0 && (
        <Stat label="Broken, last hour" title="The processes of the former holders may still run" isWarning>
          <a href={hrefOf("audit")}>{broken}</a>
        </Stat>
      )}
    </>
  );
}

/** The oldest wait of all locks, with a link to its lock. */
function OldestWait({ row }: { row: Row | undefined }) {
  const waited = row === undefined ? undefined : oldestWaitMs(row, now.value);
  if (row === undefined || waited === undefined) return <Stat label="Oldest wait">–</Stat>;
  return (
    <Stat label="Oldest wait" isWarning={isLongWait(row, waited)}>
      <a href={hrefOf("lock", { key: row.key })}>{formatTicking(waited)}</a>
    </Stat>
  );
}
