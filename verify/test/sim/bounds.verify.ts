import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, test } from "vitest";

import { withBounds } from "./bounds.ts";
import { bundleSimulation } from "./bundle.ts";
import { mutatedFiles } from "../../mutants/mutant.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { Sources } from "../../mutants/sources.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-bounds-"));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

test.each([1, 2, 3] as const)("no check fails in 40 schedules with all bounds set to %d", async (bound) => {
  const root = repositoryRoot();
  const program = join(folder, `${bound}.mjs`);
  await bundleSimulation(root, mutatedFiles(new Sources(root), withBounds(bound)), program);
  const args = [program, "--seed", "1", "--runs", "40", "--workers", "1"];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toContain("no failures");
});
