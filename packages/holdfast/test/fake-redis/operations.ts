import fc from "fast-check";

import { requester as askerOfNode } from "../support/quorum-script-fixture.ts";
import { requester, type Requester } from "../support/script-fixture.ts";

/** Client 0 subscribes by sharded pub/sub, and client 1 by plain pub/sub. The processes of clients 2 and 3 are dead. */
export const clientCount = 4;
export const lockCount = 2;

export interface Operation {
  readonly lock: number;
  readonly name: string;
  /**
   * The arguments. The number of `extend`, `breakGrant`, `yield` and `raiseFence` is relative to the present grant ("": none).
   * The argument `present` of a latch stands for the generation of the present latch.
   */
  readonly args: readonly string[];
  /** On a node of a quorum: the proposed fencing token, in microseconds relative to the server's time. */
  readonly candidate: number;
}

export interface Weighted<T> {
  readonly weight: number;
  readonly arbitrary: fc.Arbitrary<T>;
}

export const locks = fc.nat(lockCount - 1);
export const ttls = fc.constantFrom(20_000, 40_000, 80_000);
const words = fc.constantFrom(
  "",
  '["owner","a"]',
  JSON.stringify(["owner", 'ü "/', "reason", "r", "number", "17"]),
);

/** The kind of both locks. A few requests use another kind. */
export type Family = "mutex" | "read-write" | "semaphore" | "latch";

const shares: Readonly<Record<Family, readonly (string | undefined)[]>> = {
  mutex: [undefined],
  latch: [undefined, undefined, undefined, "r"],
  "read-write": ["r", "w", "r", "r", "w", "r"],
  semaphore: ["s1/3", "s2/3", "s1/3", "s3/3", "s1/3", "s2/3"],
};

/** A few attempts with their own queue arguments, from two clients or tickets, so that attempts repeat. */
function askersOf(isQuorum: boolean, family: Family): fc.Arbitrary<Requester> {
  const make = isQuorum ? askerOfNode : requester;
  const oddOnes = family === "mutex" ? ["r"] : [undefined, "s1/2", "w"];
  return fc
    .tuple(
      fc.nat(5),
      fc.nat(1),
      fc.oneof(
        { weight: 11, arbitrary: fc.constant(null) },
        { weight: 1, arbitrary: fc.constantFrom(...oddOnes) },
      ),
    )
    .map(([attempt, variant, odd]) => {
      const own = shares[family][attempt % shares[family].length];
      const lockMode = odd === null ? own : odd;
      return make(attempt, {
        client: (attempt + variant * 2) % clientCount,
        ticket: [7, 3, 5, 3, 9_007_199_254_740_991, 1_700_000_000_123_456][attempt] as number,
        ...(lockMode === undefined ? {} : { lockMode }),
        ttlMs: attempt % 2 === 0 ? 30_000 : 60_000,
        fencingCount: attempt % 3 === 0 ? 16 : 1,
        deadline: [0, 0, 9_999_999_999_999, 0, 0, 1_000_000_000_000][attempt] as number,
        kind: (attempt + variant * 2) % clientCount === 1 ? "p" : "s",
      });
    });
}

/** Includes proposals more than the allowed second before and after the server's time. */
const candidates = fc.constantFrom(0, 0, 700, 300_000, -300_000, 1_100_000, -1_100_000, -1e15, 1e15);

function operation(name: string, args: fc.Arbitrary<readonly string[]>): fc.Arbitrary<Operation> {
  return fc
    .tuple(locks, args, candidates)
    .map(([lock, own, candidate]) => ({ lock, name, args: own, candidate }));
}

const wants = fc.constantFrom("1", "16");
const waits = fc.constantFrom("0", "1", "1", "2", "3");
const waitsOfOneServer = fc.constantFrom("0", "1", "1", "2", "3", "4");
const latests = fc.constantFrom("9999999999999", "9999999999999", "9999999999999", "1000000000000");
const reasons = fc.constantFrom("r", 'a/b "c"\\ ü \u007f\u0001\n\t', "");

function operationsOfOneServer(askers: fc.Arbitrary<Requester>): Weighted<Operation>[] {
  return [
    {
      weight: 8,
      arbitrary: operation(
        "acquire",
        fc
          .tuple(askers, ttls, wants, waitsOfOneServer, words, latests)
          .map(([who, ttl, want, wait, said, latest]) => {
            return [who.token, who.entryTail, String(ttl), want, wait, said, latest];
          }),
      ),
    },
    {
      weight: 5,
      arbitrary: operation(
        "release",
        fc
          .tuple(askers, fc.constantFrom("0", "1"), fc.boolean())
          .map(([{ token, entryTail }, own, hasEntry]) => [token, hasEntry ? entryTail : "", own]),
      ),
    },
  ];
}

function operationsOf(askers: fc.Arbitrary<Requester>): Weighted<Operation>[] {
  return [
    {
      weight: 3,
      arbitrary: operation(
        "extend",
        fc
          .tuple(askers, ttls, words, fc.constantFrom("", "0", "0", "15", "-1"))
          .map(([{ token }, ttl, said, number]) => [token, String(ttl), said, number]),
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
  ];
}

function operationsOfShares(askers: fc.Arbitrary<Requester>): Weighted<Operation>[] {
  return [
    {
      weight: 3,
      arbitrary: operation(
        "downgrade",
        askers.map(({ token, entryTail }) => [token, entryTail]),
      ),
    },
    { weight: 2, arbitrary: operation("setLimit", fc.constantFrom(["3"], ["3"], ["2"], ["1"], ["5"])) },
  ];
}

/** The latch that the caller knows: none, the present latch, or an ended latch. */
const knownLatches = fc.constantFrom("", "", "", "present", "1");
const counts = fc.constantFrom("2", "2", "2", "2", "2", "2", "3");

function operationsOfLatches(all: fc.Arbitrary<Requester>): Weighted<Operation>[] {
  const askers = all.map(({ token, ...who }) => ({ ...who, token: token.replace(/:[a-z][^:]*:/, ":") }));
  return [
    {
      weight: 30,
      arbitrary: operation(
        "countDown",
        fc
          .tuple(askers, counts, ttls, knownLatches, latests)
          .map(([{ token }, count, ttl, known, latest]) => [token, count, String(ttl), known, latest]),
      ),
    },
    {
      weight: 30,
      arbitrary: operation(
        "waitLatch",
        fc
          .tuple(askers, counts, ttls, knownLatches, latests, fc.constantFrom("s", "p", "n"))
          .map(([{ token }, count, ttl, known, latest, kind]) => [
            token,
            count,
            String(ttl),
            known,
            latest,
            kind,
          ]),
      ),
    },
    {
      weight: 6,
      arbitrary: operation(
        "leaveLatchQueue",
        fc.tuple(askers, fc.constantFrom("s", "p")).map(([{ token }, kind]) => [token, kind]),
      ),
    },
  ];
}

function operationsOfQuorum(askers: fc.Arbitrary<Requester>): Weighted<Operation>[] {
  return [
    {
      weight: 6,
      arbitrary: operation(
        "acquire",
        fc.tuple(askers, ttls, wants, waits, words, latests).map(([who, ttl, want, wait, said, latest]) => {
          return [who.token, who.entryTail, String(ttl), want, wait, said, latest];
        }),
      ),
    },
    {
      weight: 4,
      arbitrary: operation(
        "release",
        askers.map(({ token, entryTail }) => [token, entryTail]),
      ),
    },
    {
      weight: 4,
      arbitrary: operation(
        "yield",
        fc
          .tuple(askers, fc.constantFrom(0, 0, 0, 1, -1), ttls, wants, words, latests)
          .map(([who, offset, ttl, want, said, latest]) => {
            return [who.token, who.entryTail, String(offset), String(ttl), want, said, latest];
          }),
      ),
    },
    {
      weight: 4,
      arbitrary: operation(
        "raiseFence",
        fc
          .tuple(askers, fc.constantFrom(0, 1, -1, 50), wants)
          .map(([{ token }, offset, want]) => [token, String(offset), want]),
      ),
    },
    {
      weight: 4,
      arbitrary: operation(
        "refill",
        fc
          .tuple(askers, ttls, fc.constantFrom(0, 1, -1))
          .map(([{ token, entryTail }, ttl, offset]) => [
            token,
            entryTail,
            String(ttl),
            String(offset),
            "0",
            "0",
          ]),
      ),
    },
  ];
}

/** The operations that are sent to one server, or to a node of a quorum, for locks of one kind. */
export function operations(isQuorum: boolean, family: Family): Weighted<Operation>[] {
  const askers = askersOf(isQuorum, family);
  return [
    ...operationsOf(askers),
    ...(isQuorum ? operationsOfQuorum(askers) : operationsOfOneServer(askers)),
    ...(family === "mutex" ? [] : operationsOfShares(askers)),
    ...(family === "latch" ? operationsOfLatches(askers) : []),
  ];
}
