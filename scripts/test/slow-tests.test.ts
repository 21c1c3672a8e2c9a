import { existsSync } from "node:fs";

import { expect, test } from "vitest";

import { slowTests } from "../slow-tests.mjs";

test("the test files that start first exist, and are named once", () => {
  const missing = slowTests.filter((path) => !existsSync(new URL(`../../${path}`, import.meta.url)));
  expect(missing).toEqual([]);
  expect(new Set(slowTests).size).toBe(slowTests.length);
});
