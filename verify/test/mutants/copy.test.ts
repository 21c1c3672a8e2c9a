import { existsSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

import { repositoryRoot } from "../../mutants/root.ts";

test("the repository has its recorded results, which copies leave out, so this test fails in every copy", () => {
  expect(existsSync(join(repositoryRoot(), "bench", "results"))).toBe(true);
});
