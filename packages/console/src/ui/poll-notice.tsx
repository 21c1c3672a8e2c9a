import type { ApiError } from "../api/client.ts";
import { Notice } from "./parts.tsx";

/** Why a page has no data: an older service, a missing scope, or no reply. */
export function PollNotice({ error, subject }: { error: ApiError | undefined; subject: string }) {
  if (error === undefined) return <p class="loading">Reading {subject}…</p>;
  return (
    <>
      <h1 class="visually-hidden">No data of {subject}</h1>
      <Reason error={error} subject={subject} />
    </>
  );
}

function Reason({ error, subject }: { error: ApiError; subject: string }) {
  if (error.isMissing) {
    return (
      <Notice title={`This service does not offer ${subject}`}>
        <p>A newer version of @holdfast/server does.</p>
      </Notice>
    );
  }
  if (error.status === 403) {
    return (
      <Notice title={`Your token does not cover ${subject}`}>
        <p>{error.message}</p>
      </Notice>
    );
  }
  return (
    <Notice title="No reply" icon="late">
      <p>{error.message}</p>
    </Notice>
  );
}
