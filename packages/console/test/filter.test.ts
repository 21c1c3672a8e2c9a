import { expect, test } from "vitest";

import type { Lock } from "../src/api/types.ts";
import { parseFilter } from "../src/model/filter.ts";
import { nextSort, parseSort, sortRows } from "../src/model/order.ts";
import { rowOf } from "../src/model/row.ts";
import { treeLines } from "../src/model/tree.ts";
import { foreign, lockOf } from "./support/locks.ts";

const now = 1_000_000;
const rows = [
  lockOf("order:2", { heldMs: 700_000, labels: { team: "payments" } }, { waiterCount: 3 }),
  lockOf("order:10", { owner: "cron@vm-1:9", heldMs: 1_000, reason: "nightly run", remainingMs: 5_000 }),
  lockOf("pool", { owner: "my app@host" }, { kind: "semaphore", limit: 3 }),
  foreign("legacy:job"),
].map((lock: Lock) => rowOf(lock, now, undefined));

const shownBy = (text: string): string[] =>
  rows.filter((row) => parseFilter(text).matches(row, now)).map(({ key }) => key);

test.each([
  ["", ["order:2", "order:10", "pool", "legacy:job"]],
  ["order:", ["order:2", "order:10"]],
  ["order:10", ["order:10"]],
  ["prefix:order:", ["order:2", "order:10"]],
  ["NIGHTLY", ["order:10"]],
  ["owner:billing waiters>0", ["order:2"]],
  ['owner:"my app"', ["pool"]],
  ["label.team:pay", ["order:2"]],
  ["reason:run", ["order:10"]],
  ["kind:semaphore", ["pool"]],
  ["state:foreign", ["legacy:job"]],
  ["foreign", ["legacy:job"]],
  ["stale", ["legacy:job"]],
  ["long", ["order:2"]],
  ["state:held-long", ["order:2"]],
  ["state:held -long", ["order:10", "pool"]],
  ["state:waiting", ["order:2"]],
  ["held>5m", ["order:2"]],
  ["held<=1s", ["order:10", "pool", "legacy:job"]],
  ["left<10s", ["order:10"]],
  ["-order: -foreign", ["pool"]],
  ["waiters>=3 held>6m label.team:payments", ["order:2"]],
])("the filter %j shows %j", (text, keys) => {
  expect(parseFilter(text).problems).toEqual([]);
  expect(shownBy(text)).toEqual(keys);
});

test("a word that is no term names the expected form, and the other terms count", () => {
  const { problems, prefix } = parseFilter("held>soon state:broken kind:lock waiters>x size>3 prefix:order:");
  expect(problems).toEqual([
    "Expected a duration, such as held>5m",
    "Expected state: held, held-long, late, foreign, no-expiry, latch, free, stale, waiting",
    "Expected kind: mutex, read-write, semaphore, latch",
    "Expected a count, such as waiters>0",
    "Expected waiters, held or left before >",
  ]);
  expect(prefix).toBe("order:");
  expect(shownBy("held>soon order:2")).toEqual(["order:2"]);
});

test("an order of the address sorts the rows, numbers in keys count as numbers", () => {
  const keysBy = (sort: string): string[] => sortRows(rows, parseSort(sort), now).map(({ key }) => key);
  expect(keysBy("key")).toEqual(["legacy:job", "order:2", "order:10", "pool"]);
  expect(keysBy("-held")[0]).toBe("order:2");
  expect(keysBy("left")[0]).toBe("order:10");
  expect(keysBy("-waiting")[0]).toBe("order:2");
  expect(keysBy("state").slice(0, 2)).toEqual(["legacy:job", "order:2"]);
  expect(nextSort({ by: "key", isDescending: false }, "held")).toEqual({ by: "held", isDescending: true });
  expect(nextSort({ by: "held", isDescending: true }, "held")).toEqual({ by: "held", isDescending: false });
});

test("the tree groups keys by their parts, and joins groups that have one member", () => {
  const keys = [
    "a",
    "tenant:acme:invoice:1",
    "tenant:acme:invoice:2",
    "order:1",
    "order:2",
    "order:2:items",
    "solo:1",
  ];
  const all = keys.map((key) => rowOf(lockOf(key), now, undefined));
  const lines = treeLines(all, (prefix) => prefix !== "tenant:acme:invoice:");
  expect(
    lines.map(
      (line) => `${" ".repeat(line.depth)}${line.label}${line.type === "group" ? ` (${line.count})` : ""}`,
    ),
  ).toEqual(["a", "tenant:acme:invoice: (2)", "order: (3)", " 1", " 2", " 2:items", "solo:1"]);
});
