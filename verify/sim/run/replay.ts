import { createHash } from "node:crypto";

import { describeFinding } from "../judge/findings.ts";
import type { Schedule } from "../plan/schedule.ts";
import { runSchedule } from "./world.ts";

/** Runs one schedule, prints every event, and then prints a hash of all events. Equal schedules give equal hashes. */
export async function replay(schedule: Schedule, print: (line: string) => void): Promise<boolean> {
  const hash = createHash("sha256");
  const writeLine = (line: string): void => {
    hash.update(`${line}\n`);
    print(line);
  };
  const { findings } = await runSchedule(schedule, { trace: writeLine });
  for (const finding of findings) {
    writeLine(describeFinding(finding));
  }
  print(`sha256 ${hash.digest("hex")}`);
  return findings.length === 0;
}
