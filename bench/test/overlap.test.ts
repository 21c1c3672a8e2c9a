import { expect, test } from "vitest";

import { maxOverlap, assertOverlap, writerWeight } from "../src/run/overlap.ts";

const holds = (
  ...list: readonly (readonly [entry: number, leaving: number, weight: number])[]
): Float64Array => Float64Array.from(list.flat());

test("holds that overlap count together, in one process or in several", () => {
  const one = holds([0, 10, 1], [20, 30, 1]);
  const other = holds([5, 25, 1]);
  expect(maxOverlap([one])).toBe(1);
  expect(maxOverlap([one, other])).toBe(2);
});

test("a holder that enters at the end of another hold does not overlap with it", () => {
  expect(maxOverlap([holds([10, 20, 1]), holds([0, 10, 1])])).toBe(1);
});

test("without holds there is no overlap", () => {
  expect(maxOverlap([holds(), holds()])).toBe(0);
});

test("a reader during a write is an error, and so is one permit too many", () => {
  const writer = holds([0, 10, writerWeight]);
  assertOverlap([writer, holds([10, 20, 1], [12, 22, 1])], writerWeight);
  expect(() => {
    assertOverlap([writer, holds([9, 20, 1])], writerWeight);
  }).toThrow("does not lock: 1 writing and 1 reading inside at once, 1 writing and 0 reading allowed");
  expect(() => {
    assertOverlap([holds([0, 10, 1], [1, 11, 1], [2, 12, 1])], 2);
  }).toThrow("does not lock: 3 inside at once, 2 allowed");
});
