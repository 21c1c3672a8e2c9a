import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, test } from "vitest";

import { bundleSimulation } from "./bundle.ts";
import { catalogue } from "../../mutants/catalogue.ts";
import { mutatedFiles, type Mutant } from "../../mutants/mutant.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { Sources } from "../../mutants/sources.ts";
import { keptSchedules } from "./kept-schedules.ts";

const root = repositoryRoot();
const sources = new Sources(root);
let temporary: string;

beforeAll(() => {
  temporary = mkdtempSync(join(tmpdir(), "holdfast-kept-"));
});

afterAll(() => {
  rmSync(temporary, { recursive: true });
});

test.each(keptSchedules)("$file fails on the mutant $kills", async ({ path, kills }) => {
  const mutant = catalogue.find(({ name }) => name === kills) as Mutant;
  const program = join(temporary, `${kills}.mjs`);
  await bundleSimulation(root, mutatedFiles(sources, mutant), program);
  const run = promisify(execFile)(process.execPath, [program, "--schedule", path]);
  await expect(run).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringContaining("FAILED") as unknown,
  });
});
