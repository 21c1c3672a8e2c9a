import { expect, test } from "vitest";

import type { Lock } from "../src/api/types.ts";
import { rowOf, stateAt, type Row } from "../src/model/row.ts";
import { plainText, sentenceOf, type Extras } from "../src/model/sentence.ts";
import { foreign, free, lockOf } from "./support/locks.ts";

const now = 10_000_000;
const read = (row: Row, extras?: Extras): string => plainText(sentenceOf(row, now, extras));
const of = (lock: Lock, extras?: Extras): string => read(rowOf(lock, now, undefined), extras);

test("a renewal says that the process lives, and not that its work advances", () => {
  const lock = lockOf(
    "order:555",
    { heldMs: 7_980_000, reason: "charge", remainingMs: 26_000 },
    { waiterCount: 3, oldestWaitMs: 7_080_000 },
  );
  const before = rowOf({ ...lock, remainingMs: 22_000 }, now - 8_000, undefined);
  const row = { ...rowOf(lock, now, before), renewedAt: now - 4_000 };
  expect(read(row)).toBe(
    "order:555 is held by billing@pod-7:4711 for 2h 13m (reason “charge”), renewed 4s ago, 3 wait, " +
      "the oldest for 1h 58m. The process is alive and renews the lease, which is held long: longer than 1m while others wait. " +
      "If its log shows no progress, stop process 4711 on pod-7: the lock frees itself when the lease ends. If you cannot stop it now, break the lock.",
  );
  const usual = { key: "order:555", count: 12, p50Ms: 2_000, p95Ms: 4_000 };
  expect(read({ ...rowOf(lock, now, before, usual), renewedAt: now })).toContain(
    "held long: 95 % of the last 12 holds took at most 4s.",
  );
});

test("a renewal that the process reports counts too", () => {
  const text = of(lockOf("k", { heldMs: 60_000 }, { waiterCount: 1, oldestWaitMs: 2_000 }), {
    renewedMs: 3_200,
  });
  expect(text).toBe(
    "k is held by billing@pod-7:4711 for 1m, renewed 3s ago, 1 waits for 2s. " +
      "The process is alive and renews the lease.",
  );
});

test("a hold is long after a minute while others wait, and after ten without a waiter", () => {
  const stateOf = (heldMs: number, waiterCount: number, ttlMs = 30_000): string =>
    stateAt(rowOf(lockOf("k", { heldMs, remainingMs: ttlMs }, { waiterCount }), now, undefined), now);
  expect([stateOf(59_000, 1), stateOf(61_000, 1), stateOf(61_000, 0)]).toEqual(["held", "held long", "held"]);
  expect([stateOf(599_000, 0), stateOf(601_000, 0)]).toEqual(["held", "held long"]);
  expect([stateOf(200_000, 1, 120_000), stateOf(241_000, 1, 120_000)]).toEqual(["held", "held long"]);
});

test("a late holder loses the lock, and a hold without a known start says so", () => {
  const before = rowOf(lockOf("k", { remainingMs: 30_000 }), now - 20_000, undefined);
  const late = rowOf(lockOf("k", { remainingMs: 10_000 }), now, before);
  expect(read(late)).toBe(
    "k is held by billing@pod-7:4711 for at least 20s. The holder has not renewed in time. The lock frees itself in 10s.",
  );
  expect(of(lockOf("k", { heldMs: 5_000 }))).toBe(
    "k is held by billing@pod-7:4711 for 5s. The next renewal is due in 10s; without one the lease ends in 30s.",
  );
});

test("another holder of a shared lock is no renewal, and an old state is no state", () => {
  const one = lockOf("pool", { heldMs: 9_000, remainingMs: 21_000 }, { kind: "semaphore", limit: 5 });
  const other = { owner: "b", fencingToken: "8", remainingMs: 30_000 };
  const before = rowOf(one, now, undefined);
  const joined = rowOf({ ...one, holders: [...one.holders, other], remainingMs: 30_000 }, now, before);
  expect(read(joined)).not.toMatch(/renewed|alive/);
  expect(read(joined)).toMatch(/Without renewals all its leases end in 30s\.$/);
  expect(plainText(sentenceOf(before, now, { renewedMs: 3_000, isOld: true }))).toMatch(
    /Its present state is not known\.$/,
  );
});

test("a foreign holder without an expiry is no case for waiting", () => {
  expect(of(foreign("k"))).toBe(
    "k is held by an unknown holder for at least <1s. " +
      "The holder is not a Holdfast client, and its key has no expiry. Only the holder frees it, or a deletion of the key on the engine.",
  );
  const expiring = { ...foreign("k"), remainingMs: 22_000 };
  expect(of(expiring)).toContain(
    "The holder is not a Holdfast client. The lock frees itself in 22s without a renewal.",
  );
  expect(of(lockOf("k", { heldMs: 1_000 }, { remainingMs: null }))).toContain(
    "The hold has no expiry: only a release or a break frees it.",
  );
});

test("a free lock names its last holder", () => {
  const last = {
    key: "k",
    owner: "ci@runner",
    since: now - 90_000,
    until: now - 30_000,
    end: "broken" as const,
  };
  expect(of(free("k"), { last })).toBe("k is free. The last holder was ci@runner, broken 30s ago.");
  expect(of(free("k", 2))).toBe("k is free, and 2 wait: the next grant is due.");
});

test("several holders are counted, and a latch has none", () => {
  const semaphore = lockOf("pool", { heldMs: 1_000, permits: 2 }, { kind: "semaphore", limit: 5 });
  const shared = { ...semaphore, holders: [...semaphore.holders, { owner: "b", fencingToken: "8" }] };
  expect(of(shared)).toContain("pool is held by billing@pod-7:4711 and 1 other (3 of 5 permits) for 1s");
  const readers = lockOf("config", { heldMs: 1_000, mode: "read" }, { kind: "read-write", limit: null });
  expect(of(readers)).toContain("config is held by billing@pod-7:4711 for reading for 1s");
  const latch = { ...free("ready", 4), kind: "latch" as const, remaining: 2, limit: 3, remainingMs: 60_000 };
  expect(of(latch)).toBe("ready is a latch with 2 of 3 left, and 4 wait for it. It ends in 1m.");
  expect(of({ ...latch, remaining: 0, waiterCount: 0, remainingMs: null })).toBe("ready is an open latch.");
});
