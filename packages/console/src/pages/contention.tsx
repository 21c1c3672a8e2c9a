import type { ContendedKey, Contention } from "../api/types.ts";
import { now } from "../live/live.ts";
import { formatDuration, formatTicking } from "../model/duration.ts";
import { clockDifferenceMs } from "../model/history.ts";
import { observedText } from "../model/sentence.ts";
import { hrefOf } from "../router.ts";
import { Notice, PageHead, TableScroll } from "../ui/parts.tsx";
import { PollNotice } from "../ui/poll-notice.tsx";
import { Sparkline } from "../ui/sparkline.tsx";
import { usePoll } from "../ui/use-poll.ts";

const bucketS = 10;
const buckets = 60;

/** The keys with the most waiting. */
export function ContentionPage() {
  const { data, error, at } = usePoll<Contention>("v1/contention", {}, 5_000);
  if (data === undefined) return <PollNotice error={error} subject="the contention of keys" />;
  const since = data.knownSince + clockDifferenceMs(data, at);
  return (
    <div class="page">
      <PageHead title="Contention">
        <p class="muted">The keys with the longest waits, {observedText(since, now.value)}</p>
      </PageHead>
      {data.keys.length === 0 ? (
        <Notice title="No caller has waited" icon="ok">
          <p>Every lock was free when a caller asked for it.</p>
        </Notice>
      ) : (
        <KeysTable keys={data.keys} age={Math.max(0, now.value - at)} />
      )}
    </div>
  );
}

/** The table of keys. The engine may not report how long callers wait, and then it has no columns for that. */
function KeysTable({ keys, age }: { keys: readonly ContendedKey[]; age: number }) {
  const hasWaits = keys.some(({ waits, oldestMs }) => waits.count > 0 || oldestMs !== undefined);
  return (
    <TableScroll label="Keys">
      <table class="table contention">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <Heading title="Waiting" />
            {hasWaits && <Heading title="Oldest" />}
            <th scope="col">Last 10 minutes</th>
            {hasWaits && <Heading title="Waits" isMinor />}
            {hasWaits && <Heading title="Wait p50" isMinor />}
            {hasWaits && <Heading title="Wait p99" />}
            <Heading title="Hold p50" isMinor />
            <Heading title="Hold p99" />
          </tr>
        </thead>
        <tbody>
          {keys.map((one) => (
            <KeyLine key={one.key} one={one} age={age} hasWaits={hasWaits} />
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

/** @param isMinor whether narrow screens leave the column out */
function Heading({ title, isMinor = false }: { title: string; isMinor?: boolean }) {
  return (
    <th scope="col" class={isMinor ? "right minor" : "right"}>
      {title}
    </th>
  );
}

function KeyLine({
  one: { key, waiting, oldestMs, waits, holds, recent },
  age,
  hasWaits,
}: {
  one: ContendedKey;
  age: number;
  hasWaits: boolean;
}) {
  const most = Math.max(0, ...recent);
  return (
    <tr>
      <td>
        <a href={hrefOf("lock", { key })}>
          <code>{key}</code>
        </a>
      </td>
      <td class="num right">{waiting}</td>
      {hasWaits && <td class="num right">{oldestMs === undefined ? "–" : formatTicking(oldestMs + age)}</td>}
      <td>
        <span class="trend">
          <Sparkline
            values={recent}
            length={buckets}
            label={`At most ${most} waiters in the last ${formatDuration(recent.length * bucketS * 1_000)}`}
          />
          <small class="num muted">peak {most}</small>
        </span>
      </td>
      {hasWaits && <td class="num right muted minor">{waits.count}</td>}
      {hasWaits && <Quantiles of={waits} />}
      <Quantiles of={holds} />
    </tr>
  );
}

function Quantiles({ of: { count, p50Ms, p99Ms } }: { of: ContendedKey["waits"] }) {
  return (
    <>
      <td class="num right minor">{count === 0 ? "–" : formatDuration(p50Ms)}</td>
      <td class="num right">{count === 0 ? "–" : formatDuration(p99Ms)}</td>
    </>
  );
}
