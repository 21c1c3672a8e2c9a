import type { ContendedKey, Contention } from "../api/types.ts";
import { now } from "../live/live.ts";
import { formatDuration, formatTicking } from "../model/duration.ts";
import { observedText } from "../model/sentence.ts";
import { hrefOf } from "../router.ts";
import { Notice, PageHead } from "../ui/parts.tsx";
import { PollNotice } from "../ui/poll-notice.tsx";
import { Sparkline } from "../ui/sparkline.tsx";
import { usePoll } from "../ui/use-poll.ts";

const bucketS = 10;

/** The keys with the most waiting. */
export function ContentionPage() {
  const { data, error, at } = usePoll<Contention>("v1/contention", {}, 5_000);
  if (data === undefined) return <PollNotice error={error} subject="the contention of keys" />;
  return (
    <div class="page">
      <PageHead title="Contention">
        <p class="muted">The keys with the longest waits, {observedText(data.knownSince, now.value)}</p>
      </PageHead>
      {data.keys.length === 0 ? (
        <Notice title="No caller has waited" icon="ok">
          <p>Every lock was free when a caller asked for it.</p>
        </Notice>
      ) : (
        <div class="table-scroll">
          <table class="table contention">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col" class="right">
                  Waiting
                </th>
                <th scope="col" class="right">
                  Oldest
                </th>
                <th scope="col">Waiters, last 10 minutes</th>
                <th scope="col" class="right">
                  Wait p50
                </th>
                <th scope="col" class="right">
                  Wait p99
                </th>
                <th scope="col" class="right">
                  Hold p50
                </th>
                <th scope="col" class="right">
                  Hold p99
                </th>
                <th scope="col" class="right">
                  Waits
                </th>
              </tr>
            </thead>
            <tbody>
              {data.keys.map((one) => (
                <KeyLine key={one.key} one={one} age={Math.max(0, now.value - at)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function KeyLine({
  one: { key, waiting, oldestMs, waits, holds, recent },
  age,
}: {
  one: ContendedKey;
  age: number;
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
      <td class="num right">{oldestMs === undefined ? "–" : formatTicking(oldestMs + age)}</td>
      <td>
        <Sparkline
          values={recent}
          label={`At most ${most} waiters in the last ${formatDuration(recent.length * bucketS * 1_000)}`}
        />
      </td>
      <Quantiles of={waits} />
      <Quantiles of={holds} />
      <td class="num right muted">{waits.count}</td>
    </tr>
  );
}

function Quantiles({ of: { count, p50Ms, p99Ms } }: { of: ContendedKey["waits"] }) {
  return (
    <>
      <td class="num right">{count === 0 ? "–" : formatDuration(p50Ms)}</td>
      <td class="num right">{count === 0 ? "–" : formatDuration(p99Ms)}</td>
    </>
  );
}
