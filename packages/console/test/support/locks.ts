import type { Holder, Lock } from "../../src/api/types.ts";

/** A mutex of one holder, with a TTL of 30 s. */
export function lockOf(key: string, holder: Partial<Holder> = {}, rest: Partial<Lock> = {}): Lock {
  const { remainingMs = 30_000, ...others } = holder;
  return {
    key,
    kind: "mutex",
    limit: 1,
    holders: [{ owner: "billing@pod-7:4711", fencingToken: "7", remainingMs, ...others }],
    waiters: [],
    waiterCount: 0,
    remainingMs,
    fencingToken: "7",
    nodes: [],
    ...rest,
  };
}

export const foreign = (key: string): Lock => ({
  ...lockOf(key),
  holders: [{ owner: "unknown" }],
  remainingMs: null,
  fencingToken: null,
});

export const free = (key: string, waiterCount = 0): Lock => ({
  ...lockOf(key),
  holders: [],
  remainingMs: null,
  waiterCount,
});
