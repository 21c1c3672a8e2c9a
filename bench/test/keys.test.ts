import { expect, test } from "vitest";

import { chooserOf } from "../src/loads/keys.ts";

test("each task has its own key for all its turns", () => {
  const keyOf = chooserOf({ by: "task" });
  expect(keyOf(0)).toBe(keyOf(0));
  expect(keyOf(0)).not.toBe(keyOf(1));
});

test("a fresh key is used for no other acquisition", () => {
  const keyOf = chooserOf({ by: "acquisition" });
  const keys = [keyOf(0), keyOf(0), keyOf(1), keyOf(0)];
  expect(new Set(keys).size).toBe(4);
});

test("keys in turn repeat after the last, for all tasks together", () => {
  const keyOf = chooserOf({ by: "turn", count: 2 });
  expect([keyOf(7), keyOf(3), keyOf(7)]).toEqual(["turn:0", "turn:1", "turn:0"]);
});

test("with Zipf keys, the k-th key has a k-th of the share of the first", () => {
  // Weights 1, 1/2, 1/3: sums 6/11, 9/11 and 1 of the whole.
  const at = (random: number): string =>
    chooserOf({ by: "zipf", name: "rank", count: 3, exponent: 1 }, () => random)(0);
  expect([0, 0.545, 0.546, 0.818, 0.819, 0.9999].map(at)).toEqual([
    "rank:1",
    "rank:1",
    "rank:2",
    "rank:2",
    "rank:3",
    "rank:3",
  ]);
});
