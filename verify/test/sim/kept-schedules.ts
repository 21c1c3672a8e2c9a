import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Schedule } from "../../sim/plan/schedule.ts";

export interface KeptSchedule extends Schedule {
  /** The mutant on which the schedule fails. */
  readonly kills: string;
}

const folder = fileURLToPath(new URL("schedules/", import.meta.url));

/** The schedules that failed once. */
export const keptSchedules = readdirSync(folder).map((file) => {
  const path = `${folder}${file}`;
  const text = readFileSync(path, "utf8");
  return { ...(JSON.parse(text) as KeptSchedule), file, path, text };
});
