import { expect, test } from "vitest";

import { catalogue } from "../../mutants/catalogue.ts";
import { describeFinding } from "../../sim/judge/findings.ts";
import { formatSchedule } from "../../sim/report/report.ts";
import { runSchedule } from "../../sim/run/world.ts";
import { keptSchedules } from "./kept-schedules.ts";

test.each(keptSchedules)("no check fails in the schedule $file, which failed once", async ({ schedule }) => {
  const { findings, grants } = await runSchedule(schedule);
  expect(findings.map(describeFinding)).toEqual([]);
  expect(grants).toBeGreaterThan(0);
});

test("each kept schedule names the mutant on which it fails", () => {
  const names = new Set(catalogue.map(({ name }) => name));
  expect(keptSchedules.filter(({ kills }) => !names.has(kills)).map(({ file }) => file)).toEqual([]);
});

test.each(keptSchedules)("$file has one line for each step", ({ text, schedule }) => {
  expect(text).toBe(formatSchedule(schedule));
});
