import { expect, test } from "vitest";

import { maxOverlap, assertOverlap, writerWeight } from "../src/run/overlap.ts";

const stays = (
  ...list: readonly (readonly [entry: number, leaving: number, weight: number])[]
): Float64Array => Float64Array.from(list.flat());

test("those are inside together whose stays overlap, whatever process they are of", () => {
  const one = stays([0, 10, 1], [20, 30, 1]);
  const other = stays([5, 25, 1]);
  expect(maxOverlap([one])).toBe(1);
  expect(maxOverlap([one, other])).toBe(2);
});

test("a holder that enters at the end of another hold does not overlap with it", () => {
  expect(maxOverlap([stays([10, 20, 1]), stays([0, 10, 1])])).toBe(1);
});

test("nobody inside is no crowd", () => {
  expect(maxOverlap([stays(), stays()])).toBe(0);
});

test("a reader beside a writer is refused, and so is one permit too many", () => {
  const writer = stays([0, 10, writerWeight]);
  assertOverlap([writer, stays([10, 20, 1], [12, 22, 1])], writerWeight);
  expect(() => {
    assertOverlap([writer, stays([9, 20, 1])], writerWeight);
  }).toThrow("does not lock: 1 writing and 1 reading inside at once, 1 writing and 0 reading allowed");
  expect(() => {
    assertOverlap([stays([0, 10, 1], [1, 11, 1], [2, 12, 1])], 2);
  }).toThrow("does not lock: 3 inside at once, 2 allowed");
});
