import { lockState, type Holder, type LockState } from "../../lock-state.ts";
import type { GrantView } from "./grants.ts";

export const shownWaiters = 100;

export function holderOf(
  { owner, reason, labels, fencingToken, createdAt }: GrantView,
  remainingMs: number,
  heldMs: number,
): Holder {
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken,
    remainingMs,
    since: createdAt,
    heldMs,
  };
}

/** @param owners of the first waiters */
export function stateOf(
  key: string,
  holder: Holder | undefined,
  owners: readonly string[],
  waiterCount: number,
): LockState {
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: holder ? [holder] : [],
    waiters: owners.map((owner, position) => ({ owner, position })),
    waiterCount,
    remainingMs: holder?.remainingMs ?? null,
    fencingToken: holder?.fencingToken ?? null,
    nodes: [{ node: "zookeeper", held: holder !== undefined }],
  });
}
