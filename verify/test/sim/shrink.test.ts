import { expect, test } from "vitest";

import type { CheckName } from "../../sim/judge/findings.ts";
import { planSchedule } from "../../sim/plan/planner.ts";
import { isFaultFree } from "../../sim/plan/schedule.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";
import { shrink } from "../../sim/shrink/shrink.ts";
import { runSchedule } from "../../sim/run/world.ts";
import { defects } from "./defects.ts";

/** The schedules in which a defect shows. The default is the scenario `calm`. */
const schedulesOf: Partial<Readonly<Record<CheckName, string>>> = {
  loss: "storm", // in other scenarios no lease is lost
  capacity: "semaphore,server",
  "multi-lock": "all,memory",
  reentry: "reentrant,calm",
  count: "latch",
  latch: "latch,storm",
};

test.each(Object.keys(defects) as CheckName[])(
  "the check %s finds a driver with its defect",
  async (check) => {
    const found: string[] = [];
    for (const seed of seedsFrom(1, schedulesOf[check] ?? "calm")) {
      const { findings } = await runSchedule(planSchedule(seed), { wrapDriver: defects[check]() });
      found.push(...findings.map((finding) => finding.check));
      if (found.includes(check) || seed > 2_000) {
        break;
      }
    }
    expect(found).toContain(check);
  },
);

test("a failing schedule is shrunk to the few steps that matter, and still fails", async () => {
  const seed = 4;
  const runDefective = async (schedule: ReturnType<typeof planSchedule>) =>
    (await runSchedule(schedule, { wrapDriver: defects.exclusion() })).findings;
  const schedule = planSchedule(seed);
  const sizes: number[] = [];
  const shrunk = await shrink(schedule, {
    run: runDefective,
    mayContinue: () => true,
    progress: ({ steps }) => sizes.push(steps.length),
  });
  expect(shrunk?.isDone).toBe(true);
  expect(shrunk?.finding.check).toBe("exclusion");
  expect(schedule.steps.length).toBeGreaterThan(10);
  expect(shrunk?.schedule.steps.length).toBeLessThanOrEqual(2);
  expect(shrunk?.schedule.clients.length).toBeLessThanOrEqual(2);
  expect(sizes.at(-1)).toBe(shrunk?.schedule.steps.length);
});

test("a schedule without findings is not shrunk, and shrinking stops at the time limit", async () => {
  const schedule = planSchedule(1);
  expect(isFaultFree(schedule)).toBe(false);
  const options = { mayContinue: () => false, progress: () => undefined };
  expect(await shrink(schedule, { ...options, run: async () => [] })).toBeUndefined();
  let runCount = 0;
  const shrunk = await shrink(schedule, {
    ...options,
    run: async () => {
      runCount += 1;
      return [{ check: "order", at: 0, text: "planted" }];
    },
  });
  expect(runCount).toBe(1);
  expect(shrunk).toMatchObject({ schedule, isDone: false, runs: 1 });
});
