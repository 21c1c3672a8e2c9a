import { expect, test } from "vitest";

import { describeFinding } from "../../sim/judge/findings.ts";
import { planSchedule } from "../../sim/plan/planner.ts";
import { kinds } from "../../sim/plan/schedule.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";
import { runSchedule } from "../../sim/run/world.ts";

// 200 schedules. `npm run verify -- --only sim` runs 20 000.

test.each(kinds.map((kind) => [kind, kind === "mutex" ? 80 : 20] as const))(
  "no check fails in schedules of the kind %s: %d of them",
  async (kind, count) => {
    const failures: string[] = [];
    let grants = 0;
    const seeds = seedsFrom(1, kind);
    for (let index = 0; index < count; index += 1) {
      const seed = seeds.next().value as number;
      const report = await runSchedule(planSchedule(seed));
      grants += report.grants;
      if (report.findings.length > 0) {
        const findings = report.findings.slice(0, 5).map((finding) => `  ${describeFinding(finding)}`);
        failures.push([`npm run verify:sim -- --runs 1 --seed ${seed}`, ...findings].join("\n"));
      }
    }
    expect(failures.join("\n\n")).toBe("");
    expect(grants).toBeGreaterThan(count);
  },
);
