import { expect, test } from "vitest";

import { growthOf } from "../src/suites/churn.ts";

const sample = (cycles: number, here: number, server: number) => ({
  atSeconds: cycles,
  cycles,
  here: here * 1e6,
  resident: 0,
  server: server * 1e6,
});

test("growth compares the medians of the first and the last third of the samples after the first round", () => {
  const filling = [sample(10, 1, 1), sample(50, 5, 50)];
  const settled = [sample(100, 10, 100), sample(200, 10, 100), sample(300, 11, 100)];
  const growth = growthOf([...filling, ...settled], 100);
  expect(growth).toMatchObject({ here: 10, hereLast: 11, server: 100, serverGrowth: 0 });
  expect(growth["hereGrowth"]).toBeCloseTo(10);
});

test("a run that ends within the first round has no growth", () => {
  expect(growthOf([sample(99, 1, 1)], 100)).toMatchObject({ hereGrowth: NaN, serverGrowth: NaN });
});
