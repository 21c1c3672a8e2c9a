import { lockState, type Holder, type LockState } from "../../lock-state.ts";
import type { GrantView, View } from "./kv.ts";

const shownWaiters = 100;

/** @param remaining the remaining TTL, rounded down, seconds */
export function holderOf({ owner, reason, labels, fencingToken }: GrantView, remaining: number): Holder {
  return {
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    fencingToken,
    remainingMs: Math.max(0, remaining * 1_000),
  };
}

/** @param remaining the remaining TTL of the grant, seconds, or -1 if the grant has ended; undefined: there is no grant */
export function stateOf(key: string, { grant, entries }: View, remaining: number | undefined): LockState {
  const holder = grant && remaining !== undefined && remaining >= 0 ? holderOf(grant, remaining) : undefined;
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: holder ? [holder] : [],
    waiters: entries.slice(0, shownWaiters).map(({ owner }, position) => ({ owner, position })),
    waiterCount: entries.length,
    remainingMs: holder?.remainingMs ?? null,
    fencingToken: holder?.fencingToken ?? null,
    nodes: [{ node: "etcd", held: holder !== undefined }],
  });
}
