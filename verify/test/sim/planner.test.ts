import { expect, test } from "vitest";

import { planSchedule } from "../../sim/plan/planner.ts";
import { isUse } from "../../sim/plan/schedule.ts";

test.each(["quorum", "server"])(
  "processes hand on a lease and pause in a part of the mutex storms on %s",
  (engine) => {
    const storms = Array.from({ length: 2_000 }, (_, index) => planSchedule(index + 1)).filter(
      (schedule) => schedule.engine === engine && schedule.kind === "mutex" && schedule.scenario === "storm",
    );
    const pausing = storms.filter(({ steps }) =>
      steps.some(
        (step) => isUse(step) && typeof step.ending === "object" && step.ending.pausesForMs !== undefined,
      ),
    );
    expect(pausing.length / storms.length).toBeGreaterThan(0.05);
  },
);

test.each(["quorum", "server", "memory"])("machines sleep in a part of the mutex storms on %s", (engine) => {
  const storms = Array.from({ length: 4_000 }, (_, index) => planSchedule(index + 1)).filter(
    (schedule) => schedule.engine === engine && schedule.kind === "mutex" && schedule.scenario === "storm",
  );
  const sleeping = storms.filter(({ steps }) =>
    steps.some((step) => step.kind === "freeze client" && step.sleeps === true),
  );
  expect(sleeping.length / storms.length).toBeGreaterThan(0.05);
});
