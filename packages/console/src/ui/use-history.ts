import { useMemo } from "preact/hooks";

import type { History } from "../api/types.ts";
import { inLocalTime } from "../model/history.ts";
import { usePoll, type Poll } from "./use-poll.ts";

/** The history of one key or of all keys, with times by the clock of the browser. */
export function useHistory(params: { readonly key?: string }, intervalMs: number): Poll<History> {
  const poll = usePoll<History>("v1/history", params, intervalMs);
  const { data, at } = poll;
  return useMemo(() => ({ ...poll, data: data && inLocalTime(data, at) }), [poll]);
}
