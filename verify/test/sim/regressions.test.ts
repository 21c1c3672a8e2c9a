import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { describeFinding } from "../../sim/judge/findings.ts";
import type { Schedule } from "../../sim/plan/schedule.ts";
import { runSchedule } from "../../sim/run/world.ts";

const folder = fileURLToPath(new URL("schedules/", import.meta.url));
const keptSchedules = readdirSync(folder).map((file) => {
  const schedule = JSON.parse(readFileSync(join(folder, file), "utf8")) as KeptSchedule;
  return { ...schedule, file };
});

interface KeptSchedule extends Schedule {
  /** The mutant on which the schedule fails. */
  readonly kills: string;
}

test.each(keptSchedules)("no check fails in the schedule $file, which failed once", async (schedule) => {
  const { findings, grants } = await runSchedule(schedule);
  expect(findings.map(describeFinding)).toEqual([]);
  expect(grants).toBeGreaterThan(0);
});

test("each kept schedule names the mutant on which it fails", () => {
  const names = new Set(catalogue.map(({ name }) => name));
  expect(keptSchedules.filter(({ kills }) => !names.has(kills)).map(({ file }) => file)).toEqual([]);
});
