import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, test } from "vitest";

import { bundleSimulation } from "./bundle.ts";
import { catalogue } from "../../mutants/catalogue.ts";
import { mutatedFiles, type Mutant } from "../../mutants/mutant.ts";
import { repositoryRoot } from "../../mutants/root.ts";
import { Sources } from "../../mutants/sources.ts";
import type { Schedule } from "../../sim/plan/schedule.ts";

const folder = fileURLToPath(new URL("schedules/", import.meta.url));
const keptSchedules = readdirSync(folder).map((file) => {
  const schedule = JSON.parse(readFileSync(join(folder, file), "utf8")) as KeptSchedule;
  return { ...schedule, file };
});

interface KeptSchedule extends Schedule {
  /** The mutant on which the schedule fails. */
  readonly kills: string;
}

const root = repositoryRoot();
const sources = new Sources(root);
let temporary: string;

beforeAll(() => {
  temporary = mkdtempSync(join(tmpdir(), "holdfast-kept-"));
});

afterAll(() => {
  rmSync(temporary, { recursive: true });
});

test.each(keptSchedules)("$file fails on the mutant $kills", async ({ file, kills }) => {
  const mutant = catalogue.find(({ name }) => name === kills) as Mutant;
  const program = join(temporary, `${kills}.mjs`);
  await bundleSimulation(root, mutatedFiles(sources, mutant), program);
  const run = promisify(execFile)(process.execPath, [program, "--schedule", join(folder, file)]);
  await expect(run).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringContaining("FAILED") as unknown,
  });
});
