import { formatTicking } from "../model/duration.ts";
import { isLongWait, oldestWaitMs, type Row } from "../model/row.ts";
import { hrefOf } from "../router.ts";
import { OwnerName } from "../ui/parts.tsx";

interface KeyCellProps {
  readonly row: Row;
  readonly depth: number;
  readonly label: string;
  readonly held: number | undefined;
}

/** The key. On a narrow screen the holder is below it. */
export function KeyCell({ row: { key, lock }, depth, label, held }: KeyCellProps) {
  const [holder] = lock.holders;
  return (
    <td class="col-key" style={{ "--depth": depth }}>
      <a href={hrefOf("lock", { key })} title={key}>
        <code>{label}</code>
      </a>
      <span class="under">
        {holder === undefined ? "–" : <OwnerName owner={holder.owner} />}
        {held !== undefined && ` · ${formatTicking(held)}`}
      </span>
    </td>
  );
}

export function Holders({ row: { lock } }: { row: Row }) {
  const [holder] = lock.holders;
  if (lock.remaining !== undefined)
    return <span class="muted num">{`${lock.remaining} of ${lock.limit} left`}</span>;
  if (holder === undefined) return <span class="muted">–</span>;
  const more = lock.holders.length - 1;
  return (
    <>
      <OwnerName owner={holder.owner} />
      {more > 0 && <span class="more num">+{more}</span>}
    </>
  );
}

export function Waiting({ row, now: time }: { row: Row; now: number }) {
  const { waiterCount } = row.lock;
  const oldest = oldestWaitMs(row, time);
  const isLong = oldest !== undefined && isLongWait(row, oldest);
  if (waiterCount === 0) return <span class="muted">–</span>;
  return (
    <>
      {waiterCount}
      {oldest !== undefined && (
        <span class={isLong ? "oldest oldest-long" : "oldest"}> oldest {formatTicking(oldest)}</span>
      )}
    </>
  );
}
