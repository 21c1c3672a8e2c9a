import { expect, test } from "vitest";

import {
  agreedRange,
  majorityOf,
  medianOf,
  majorityReached,
  validityOf,
  type NodeReport,
} from "../../../../src/drivers/redis/redlock/majority.ts";

test.each([
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 3],
  [5, 3],
  [15, 8],
])("of %i nodes %i are a majority: any two majorities share a node", (nodes, majority) => {
  expect(majorityOf(nodes)).toBe(majority);
  expect(majority * 2).toBeGreaterThan(nodes);
});

const report = (first: number, round = 1, last = first): NodeReport => ({ first, last, round });

test("the token is what a majority reported", () => {
  expect(agreedRange([report(7), report(8), report(7)], 2)).toMatchObject({ first: 7 });
  expect(agreedRange([report(7), report(8), report(9)], 2)).toBeUndefined();
});

test("a smaller number that a majority reported is the token, though one node is above it", () => {
  expect(agreedRange([report(9), report(7), report(7)], 2)).toMatchObject({ first: 7 });
});

test("a larger number is no agreement, because it would give two leases one token", () => {
  expect(agreedRange([report(7), report(9)], 2)).toBeUndefined();
});

test("reports of different rounds do not add up", () => {
  expect(agreedRange([report(7, 1), report(7, 2)], 2)).toBeUndefined();
});

test("blocks are compared as a whole", () => {
  expect(agreedRange([report(7, 1, 23), report(7, 1, 7)], 2)).toBeUndefined();
  expect(agreedRange([report(7, 1, 23), report(7, 1, 23)], 2)).toEqual({ first: 7, last: 23, round: 1 });
});

test("a majority is valid until the largest time that a majority reaches, by each of the two clocks", () => {
  const of = (until: number, untilWall = until): { until: number; untilWall: number } => ({
    until,
    untilWall,
  });
  expect(validityOf([of(10), of(30), of(20)], 2)).toEqual(of(20));
  expect(validityOf([of(10), of(30, 5), of(20, 40)], 2)).toEqual(of(20, 5));
});

test("the value that a majority reaches", () => {
  expect(majorityReached([5, 1, 4, 2, 3], 3)).toBe(3);
  expect(majorityReached([5, 1], 3)).toBeUndefined();
});

test("the median of an even number is between the two in the middle", () => {
  expect(medianOf([3, 1, 2])).toBe(2);
  expect(medianOf([4, 1, 2, 3])).toBe(2.5);
  expect(medianOf([])).toBeUndefined();
});
