import fc from "fast-check";

import { asker, type Asker } from "../scripts/stage.ts";

/** Clients 0 and 1 listen, the first by sharded and the second by plain pub/sub; the processes of 2 and 3 are gone. */
export const clientCount = 4;
export const lockCount = 2;

export interface Operation {
  readonly lock: number;
  readonly name: string;
  /** Its arguments; of `breakGrant` the first is counted from the first number of the present grant. */
  readonly args: readonly string[];
}

/** What happens to both servers. `part` is one of a lock's four keys. */
export type Step =
  | { readonly type: "operate"; readonly operations: readonly Operation[]; readonly bound: number }
  | { readonly type: "expire" | "delete" | "spoil"; readonly lock: number; readonly part: number }
  | { readonly type: "limit"; readonly lock: number; readonly part: number; readonly ttlMs: number | null }
  | { readonly type: "seize"; readonly lock: number; readonly ttlMs: number | null }
  | { readonly type: "count"; readonly lock: number; readonly last: number }
  | { readonly type: "crowd"; readonly lock: number; readonly dead: number; readonly junk: boolean }
  | { readonly type: "mute"; readonly fails: boolean }
  | { readonly type: "flush" };

const locks = fc.nat(lockCount - 1);
const parts = fc.nat(3);
const ttls = fc.constantFrom(20_000, 40_000, 80_000);
const words = fc.constantFrom(
  "",
  '["owner","a"]',
  JSON.stringify(["owner", 'ü "/', "reason", "r", "number", "17"]),
);

/** Few attempts, each with terms of its own, by two clients or tickets: so that they meet again. */
const askers: fc.Arbitrary<Asker> = fc.tuple(fc.nat(5), fc.nat(1)).map(([attempt, variant]) =>
  asker(attempt, {
    client: (attempt + variant * 2) % clientCount,
    ticket: [7, 3, 5, 3, 9_007_199_254_740_991, 1_700_000_000_123_456][attempt] as number,
    ttlMs: attempt % 2 === 0 ? 30_000 : 60_000,
    want: attempt % 3 === 0 ? 16 : 1,
    deadline: [0, 0, 9_999_999_999_999, 0, 0, 1_000_000_000_000][attempt] as number,
    kind: (attempt + variant * 2) % clientCount === 1 ? "p" : "s",
  }),
);

function operation(name: string, args: fc.Arbitrary<readonly string[]>): fc.Arbitrary<Operation> {
  return fc.tuple(locks, args).map(([lock, own]) => ({ lock, name, args: own }));
}

const wants = fc.constantFrom("1", "16");
const waits = fc.constantFrom("0", "1", "1", "2");
const reasons = fc.constantFrom("r", 'a/b "c"\\ ü \u007f\u0001\n\t', "");

const operations: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: operation(
      "acquire",
      fc
        .tuple(askers, ttls, wants, waits, words)
        .map(([who, ttl, want, wait, said]) => [who.token, who.terms, String(ttl), want, wait, said]),
    ),
  },
  {
    weight: 2,
    arbitrary: operation(
      "passOn",
      fc
        .tuple(askers, askers, ttls, wants, words)
        .map(([old, who, ttl, want, said]) => [old.token, who.token, who.terms, String(ttl), want, said]),
    ),
  },
  {
    weight: 4,
    arbitrary: operation(
      "release",
      askers.map(({ token, terms }) => [token, terms]),
    ),
  },
  {
    weight: 3,
    arbitrary: operation(
      "extend",
      fc.tuple(askers, ttls, words).map(([{ token }, ttl, said]) => [token, String(ttl), said]),
    ),
  },
  {
    weight: 2,
    arbitrary: operation(
      "verify",
      askers.map(({ token }) => [token]),
    ),
  },
  { weight: 2, arbitrary: operation("inspect", fc.constant([])) },
  {
    weight: 2,
    arbitrary: operation(
      "breakGrant",
      fc
        .tuple(fc.constantFrom(0, 0, 0, 15, 16, -1), fc.constantFrom("s", "p"), reasons)
        .map(([offset, kind, reason]) => [String(offset), kind, reason]),
    ),
  },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 24,
    arbitrary: fc.record({
      type: fc.constant("operate" as const),
      operations: fc.array(operations, { minLength: 1, maxLength: 4 }),
      bound: fc.constantFrom(100_000, 100_000, 100_000, 1, 0),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("expire" as const), lock: locks, part: parts }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), lock: locks, part: parts }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("spoil" as const), lock: locks, part: parts }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("limit" as const),
      lock: locks,
      part: parts,
      ttlMs: fc.option(ttls),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("seize" as const), lock: locks, ttlMs: fc.option(ttls) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("count" as const),
      lock: locks,
      last: fc.constantFrom(0, 17, 1_700_000_000_000_000, 3_000_000_000_000_000, 9_007_199_254_740_000),
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
  { weight: 1, arbitrary: fc.constant({ type: "flush" as const }) },
);

export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 1, maxLength: 40, size: "max" });
