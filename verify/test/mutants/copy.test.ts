import { existsSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

import { repositoryRoot } from "../../mutants/root.ts";

test("the repository has its recorded results, which its copies leave out: this fails in a copy, with and without a mutant", () => {
  expect(existsSync(join(repositoryRoot(), "bench", "results"))).toBe(true);
});
