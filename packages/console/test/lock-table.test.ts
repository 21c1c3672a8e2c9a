import { expect, test } from "vitest";

import { LockTable } from "../src/model/lock-table.ts";
import { isLong, stateAt, type Row } from "../src/model/row.ts";
import { foreign, free, lockOf } from "./support/locks.ts";

function keysOf(table: LockTable): string[] {
  return table.rows.map(({ key }) => key).toSorted();
}

test("events add, change and remove rows, and a list corrects what the stream has missed", () => {
  const table = new LockTable();
  table.applyEvent({ type: "snapshot", key: "a", state: lockOf("a") }, 100);
  table.applyEvent({ type: "snapshot", key: "missed", state: lockOf("missed") }, 100);
  table.applyEvent({ type: "changed", key: "b", state: lockOf("b") }, 210);
  table.applyPage([lockOf("a"), lockOf("c")], 250, 200);
  table.endList(new Set(["a", "c"]), 200);
  expect(keysOf(table)).toEqual(["a", "b", "c"]);
  table.applyEvent({ type: "gone", key: "a", state: free("a") }, 300);
  table.applyEvent({ type: "changed", key: "c", state: free("c", 2) }, 300);
  expect(keysOf(table)).toEqual(["b", "c"]);
  expect(table.row("c")?.state).toBe("free");
});

test("a slow list does not replace a newer event", () => {
  const table = new LockTable();
  table.applyEvent(
    { type: "changed", key: "a", state: lockOf("a", { owner: "new", fencingToken: "9" }) },
    150,
  );
  table.applyPage([lockOf("a", { owner: "old", fencingToken: "8" })], 400, 100);
  expect(table.row("a")?.lock.holders[0]?.owner).toBe("new");
});

test("a row remembers since when, its TTL and the last renewal, until another grant comes", () => {
  const table = new LockTable();
  table.applyPage([lockOf("a", { remainingMs: 29_000 })], 1_000, 900);
  table.applyPage([lockOf("a", { remainingMs: 22_000 })], 8_000, 7_900);
  expect(table.row("a")).toMatchObject({
    since: 1_000,
    isSinceExact: false,
    ttlMs: 29_000,
    renewedAt: undefined,
  });
  table.applyPage([lockOf("a", { remainingMs: 29_500 })], 12_000, 11_900);
  expect(table.row("a")).toMatchObject({ ttlMs: 29_500, renewedAt: 12_000, state: "held" });
  table.applyPage([lockOf("a", { remainingMs: 12_000 })], 30_000, 29_900);
  expect(table.row("a")?.state).toBe("late");
  table.applyPage([lockOf("a", { remainingMs: 9_000, fencingToken: "8", heldMs: 500 })], 31_000, 30_900);
  expect(table.row("a")).toMatchObject({
    since: 30_500,
    isSinceExact: true,
    ttlMs: 9_000,
    renewedAt: undefined,
    state: "held",
  });
});

test("a hold is long compared with earlier holds of its key, or else with its TTL", () => {
  const usual = { key: "job", count: 9, p50Ms: 3_000_000, p95Ms: 3_600_000 };
  const table = new LockTable((key) => (key === "job" ? usual : undefined));
  const isLongAfter = (key: string, heldMs: number): boolean => {
    table.applyPage([lockOf(key, { heldMs })], heldMs, heldMs);
    return isLong(table.row(key) as Row, heldMs);
  };
  expect([599_000, 601_000].map((ms) => isLongAfter("order", ms))).toEqual([false, true]);
  expect([601_000, 7_199_000, 7_201_000].map((ms) => isLongAfter("job", ms))).toEqual([false, false, true]);
  table.applyPage([lockOf("order", { heldMs: 900_000, remainingMs: 9_000 })], 900_000, 900_000);
  expect(stateAt(table.row("order") as Row, 900_000)).toBe("late");
});

test("each kind of trouble has a state of its own", () => {
  const table = new LockTable();
  const unlimited = lockOf("n", {}, { remainingMs: null });
  const latch = { ...free("l"), kind: "latch" as const, remaining: 2, limit: 3 };
  table.applyPage([foreign("f"), unlimited, latch], 100, 50);
  expect(["f", "n", "l"].map((key) => table.row(key)?.state)).toEqual(["foreign", "no expiry", "latch"]);
});

test("another tab gets the changes of a frame, and a new tab gets everything", () => {
  const [leader, follower] = [new LockTable(), new LockTable()];
  leader.applyPage([lockOf("a"), lockOf("b")], 100, 50);
  follower.applyChanges(leader.takeChanges() ?? leader.everything());
  expect(leader.takeChanges()).toBeUndefined();
  leader.applyEvent({ type: "gone", key: "a", state: free("a") }, 200);
  leader.applyEvent({ type: "changed", key: "c", state: lockOf("c") }, 200);
  follower.applyChanges(structuredClone(leader.takeChanges()) ?? leader.everything());
  expect(keysOf(follower)).toEqual(["b", "c"]);
  const late = new LockTable();
  late.applyEvent({ type: "changed", key: "old", state: lockOf("old") }, 1);
  late.applyChanges(leader.everything());
  expect(keysOf(late)).toEqual(["b", "c"]);
});
