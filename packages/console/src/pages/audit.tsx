import { useSignal } from "@preact/signals";

import { get } from "../api/client.ts";
import type { AuditPage as Page, AuditRecord } from "../api/types.ts";
import { now } from "../live/live.ts";
import { hrefOf, route } from "../router.ts";
import { Ago, Notice, OwnerName, PageHead, TableScroll } from "../ui/parts.tsx";
import { PollNotice } from "../ui/poll-notice.tsx";
import { toast } from "../ui/toast.tsx";
import { usePoll } from "../ui/use-poll.ts";

const pageSize = "100";
const results: Readonly<Record<string, { readonly word: string; readonly chip: string }>> = {
  broken: { word: "broken", chip: "free" },
  unknown: { word: "unknown", chip: "late" },
};

/** The breaks: by whom, when, why, what, and the result. */
export function AuditPage() {
  const key = route.value.params.get("key") ?? undefined;
  const { data, error } = usePoll<Page>("v1/audit", { limit: pageSize, key }, 5_000);
  const older = useSignal<Page | undefined>(undefined);
  if (data === undefined) return <PollNotice error={error} subject="an audit log" />;
  const known = new Set(data.records.map(({ id }) => id));
  const records = [...data.records, ...(older.value?.records.filter(({ id }) => !known.has(id)) ?? [])];
  const cursor = older.value === undefined ? data.cursor : older.value.cursor;
  const more = async (): Promise<void> => {
    try {
      const next = await get<Page>("v1/audit", { limit: pageSize, key, cursor: cursor ?? undefined });
      older.value = { records: [...(older.value?.records ?? []), ...next.records], cursor: next.cursor };
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), { isError: true });
    }
  };
  return (
    <div class="page">
      <PageHead title="Audit">
        <p class="muted">{key === undefined ? "All breaks, the newest first" : `The breaks of ${key}`}</p>
        {key !== undefined && <a href={hrefOf("audit")}>All</a>}
      </PageHead>
      {records.length === 0 ? (
        <Notice title="No lock was broken" icon="ok">
          <p>Each break is recorded here, with its reason.</p>
        </Notice>
      ) : (
        <Records records={records} />
      )}
      {cursor !== null && (
        <button type="button" onClick={() => void more()}>
          Older records
        </button>
      )}
    </div>
  );
}

function Records({ records }: { records: readonly AuditRecord[] }) {
  return (
    <TableScroll label="Breaks">
      <table class="table audit">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">By</th>
            <th scope="col">Key</th>
            <th scope="col">Former holder</th>
            <th scope="col">Reason</th>
            <th scope="col">Result</th>
            <th scope="col">Fencing token</th>
            <th scope="col">Record</th>
          </tr>
        </thead>
        <tbody>
          {records.map(({ id, at, principal, key, owner, reason, result, fencingToken }) => (
            <tr key={id}>
              <td>
                <Ago at={at} now={now.value} />
              </td>
              <td>{principal}</td>
              <td>
                <a href={hrefOf("lock", { key })}>
                  <code>{key}</code>
                </a>
              </td>
              <td>{owner === undefined ? "–" : <OwnerName owner={owner} />}</td>
              <td class="wrap">{reason}</td>
              <td>
                <span class={`chip chip-${results[result]?.chip ?? "free"}`}>
                  {results[result]?.word ?? result}
                </span>
              </td>
              <td class="num muted">{fencingToken}</td>
              <td class="num muted">{id}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}
