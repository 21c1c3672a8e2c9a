import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Schedule } from "../../sim/plan/schedule.ts";

interface KeptSchedule extends Schedule {
  /** The mutant on which the schedule fails. */
  readonly kills: string;
}

const folder = fileURLToPath(new URL("schedules/", import.meta.url));

/** The schedules that failed once. */
export const keptSchedules = readdirSync(folder).map((file) => {
  const path = `${folder}${file}`;
  const text = readFileSync(path, "utf8");
  const schedule = JSON.parse(text) as KeptSchedule;
  return { file, path, text, schedule, kills: schedule.kills };
});
