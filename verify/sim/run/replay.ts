import { createHash } from "node:crypto";

import { toldOf } from "../judge/findings.ts";
import type { Schedule } from "../plan/schedule.ts";
import { play } from "./world.ts";

/** Plays one schedule, tells all that happens, and ends with a hash of it: the same schedule, the same hash. */
export async function replay(schedule: Schedule, print: (line: string) => void): Promise<boolean> {
  const hash = createHash("sha256");
  const tell = (line: string): void => {
    hash.update(`${line}\n`);
    print(line);
  };
  const { findings } = await play(schedule, { trace: tell });
  for (const finding of findings) {
    tell(toldOf(finding));
  }
  print(`sha256 ${hash.digest("hex")}`);
  return findings.length === 0;
}
