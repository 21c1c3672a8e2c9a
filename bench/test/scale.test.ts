import { expect, test } from "vitest";

import { linearScale, logScale, compactNumber } from "../src/report/charts/scale.ts";

test("a linear scale begins at zero and ends at a round number above the largest", () => {
  const scale = linearScale([3, 37]);
  expect(scale.ticks).toEqual([0, 10, 20, 30, 40]);
  expect([0, 20, 40, Number.NaN].map((value) => scale.positionOf(value))).toEqual([0, 0.5, 1, NaN]);
});

test("a linear scale without values goes from zero to one", () => {
  expect(linearScale([Number.NaN]).ticks).toEqual([0, 1]);
});

test("a logarithmic scale has powers of ten around its values, and zero is at its beginning", () => {
  const scale = logScale([0.2, 300, 0]);
  expect(scale.ticks).toEqual([0.1, 1, 10, 100, 1_000]);
  expect(scale.positionOf(10)).toBeCloseTo(0.5);
  expect(scale.positionOf(0)).toBe(0);
});

test("numbers at a bar are short", () => {
  const texts = [0, 0.123, 12.34, 123.4, 1_234, 12_345, 1_234_567, Number.NaN].map(compactNumber);
  expect(texts).toEqual(["0", "0.12", "12.3", "123", "1234", "12.3 k", "1.23 M", "–"]);
});
