import fc from "fast-check";

import { locks, operations, ttls, type Family, type Operation, type Weighted } from "./operations.ts";

/** A change on both servers. `part` selects one of a lock's three keys, or its counter. */
export type Step =
  | {
      readonly type: "operate";
      readonly operations: readonly Operation[];
      readonly bound: number;
      readonly isQuorum: boolean;
    }
  | { readonly type: "expire" | "delete" | "spoil"; readonly lock: number; readonly part: number }
  | { readonly type: "limit"; readonly lock: number; readonly part: number; readonly ttlMs: number | null }
  | { readonly type: "seize"; readonly lock: number; readonly ttlMs: number | null }
  /** Sets the counter, which is ahead of the time by `aheadMs`. */
  | {
      readonly type: "count";
      readonly lock: number;
      readonly last: number;
      readonly aheadMs: number;
      readonly isQuorum: boolean;
    }
  | { readonly type: "crowd"; readonly lock: number; readonly dead: number; readonly junk: boolean }
  | { readonly type: "mute"; readonly fails: boolean }
  /** The memory of the servers is full, or no longer. */
  | { readonly type: "fill"; readonly isFull: boolean }
  | { readonly type: "flush" };

const parts = fc.nat(3);

function operating(isQuorum: boolean, family: Family): fc.Arbitrary<Step> {
  return fc.record({
    type: fc.constant("operate" as const),
    operations: fc.array(fc.oneof(...operations(isQuorum, family)), { minLength: 1, maxLength: 4 }),
    bound: fc.constantFrom(100_000, 100_000, 100_000, 1, 0),
    isQuorum: fc.constant(isQuorum),
  });
}

const incidents = (isQuorum: boolean): Weighted<Step>[] => [
  { weight: 2, arbitrary: fc.record({ type: fc.constant("expire" as const), lock: locks, part: parts }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), lock: locks, part: parts }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("spoil" as const), lock: locks, part: parts }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("limit" as const),
      lock: locks,
      part: parts,
      ttlMs: fc.option(ttls, { nil: null }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("seize" as const),
      lock: locks,
      ttlMs: fc.option(ttls, { nil: null }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("count" as const),
      lock: locks,
      last: fc.constantFrom(0, 17, 1_700_000_000_000_000, 3_000_000_000_000_000, 9_007_199_254_740_000),
      aheadMs: fc.constantFrom(0, 5, 3_600_000, 80_000_000),
      isQuorum: fc.constant(isQuorum),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("crowd" as const),
      lock: locks,
      dead: fc.constantFrom(1, 15, 16, 17, 40),
      junk: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("mute" as const), fails: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("fill" as const), isFull: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ type: "flush" as const }) },
];

/** @param isQuorum whether the server is a node of a quorum in all steps */
export function steps(isQuorum: boolean, family: Family): fc.Arbitrary<Step[]> {
  const step = fc.oneof({ weight: 24, arbitrary: operating(isQuorum, family) }, ...incidents(isQuorum));
  return fc.array(step, { minLength: 1, maxLength: 40, size: "max" });
}
