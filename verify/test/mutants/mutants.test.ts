import { existsSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { mutatedFiles } from "../../mutants/edits.ts";
import { repositoryRoot } from "../../mutants/root.ts";

test("each mutant of the catalogue fits the source and has a unique name", () => {
  const root = repositoryRoot();
  const outdated = catalogue.flatMap((mutant) => {
    try {
      mutatedFiles(root, mutant);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  expect(outdated).toEqual([]);
  expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length);
});

test("each test file of a killer exists", () => {
  const root = repositoryRoot();
  const files = catalogue.flatMap(({ killers }) =>
    killers.flatMap((killer) => ("file" in killer ? killer.file : [])),
  );
  expect([...new Set(files)].filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
