import { manualRandom } from "holdfast/testing";
import { expect, test } from "vitest";

test("equal seeds produce equal sequences, and other seeds other sequences", () => {
  const [one, same, other] = [manualRandom(7), manualRandom(7), manualRandom(8)];
  const drawn = Array.from({ length: 100 }, () => [one.id(), one.nextFloat()]);
  expect(Array.from({ length: 100 }, () => [same.id(), same.nextFloat()])).toEqual(drawn);
  expect([other.id(), other.nextFloat()]).not.toEqual(drawn[0]);
});

test("ids are different 32 hex digits, and fractions are uniform from 0 to 1", () => {
  const random = manualRandom(1);
  const ids = new Set(Array.from({ length: 10_000 }, () => random.id()));
  expect(ids.size).toBe(10_000);
  expect([...ids].every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  const fractions = Array.from({ length: 10_000 }, () => random.nextFloat());
  expect(fractions.every((fraction) => fraction >= 0 && fraction < 1)).toBe(true);
  expect(fractions.reduce((sum, fraction) => sum + fraction) / 10_000).toBeCloseTo(0.5, 1);
});
