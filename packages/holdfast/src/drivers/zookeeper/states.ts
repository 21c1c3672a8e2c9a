import { lockState, type Holder, type LockState, type Waiter } from "../../lock-state.ts";
import type { GrantView } from "./grants.ts";

export const shownWaiters = 100;

export function holderOf(
  { owner, reason, labels, fencingToken, createdAt }: GrantView,
  remainingMs: number,
  heldMs: number | undefined,
): Holder {
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken,
    remainingMs,
    since: createdAt,
    ...(heldMs === undefined ? {} : { heldMs }),
  };
}

/** @param waiters the first waiters */
export function stateOf(
  key: string,
  holder: Holder | undefined,
  waiters: readonly Omit<Waiter, "position">[],
  waiterCount: number,
): LockState {
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: holder ? [holder] : [],
    waiters: waiters.map((waiter, position) => ({ ...waiter, position })),
    waiterCount,
    remainingMs: holder?.remainingMs ?? null,
    fencingToken: holder?.fencingToken ?? null,
    nodes: [{ node: "zookeeper", held: holder !== undefined }],
  });
}
