import { expect, test } from "vitest";

import { describeFinding } from "../../sim/judge/findings.ts";
import { planSchedule } from "../../sim/plan/planner.ts";
import { runSchedule } from "../../sim/run/world.ts";

const batchSize = 50;

/** Runs the schedules of `count` seeds, in batches. A failure names the command that repeats the schedule. */
export function testSchedules(firstSeed: number, count: number): void {
  for (let first = firstSeed; first < firstSeed + count; first += batchSize) {
    const last = Math.min(first + batchSize, firstSeed + count) - 1;
    test(`no check fails in the schedules of seeds ${first} to ${last}`, async () => {
      const failures: string[] = [];
      let grants = 0;
      for (let seed = first; seed <= last; seed += 1) {
        const report = await runSchedule(planSchedule(seed));
        grants += report.grants;
        if (report.findings.length > 0) {
          const findings = report.findings.slice(0, 5).map((finding) => `  ${describeFinding(finding)}`);
          failures.push([`npm run verify:sim -- --runs 1 --seed ${seed}`, ...findings].join("\n"));
        }
      }
      expect(failures.join("\n\n")).toBe("");
      expect(grants).toBeGreaterThan(last - first);
    }, 120_000);
  }
}
