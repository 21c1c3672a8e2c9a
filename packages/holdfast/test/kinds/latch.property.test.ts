import fc from "fast-check";
import { test } from "vitest";

import { LatchFaultScenario, faultSteps } from "../support/latch-faults.ts";
import { LatchScenarioPlayer, latchSteps } from "../support/latch-player.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

test("in memory a latch is what the model says, at every moment", async () => {
  await fc.assert(
    fc.asyncProperty(latchSteps(), async (steps) => {
      await new LatchScenarioPlayer(simulateMemory(3)).run(steps);
    }),
    { numRuns: 300 },
  );
}, 120_000);

test("on Redis every count and every wait ends as the model says, at once where it opens, and nothing is left", async () => {
  await fc.assert(
    fc.asyncProperty(latchSteps(), async (steps) => {
      await new LatchScenarioPlayer(await simulateRedis(3)).run(steps);
    }),
    { numRuns: 120 },
  );
}, 120_000);

test("whatever answers and messages are lost or come twice, each attempt counts once, and all who wait are let go", async () => {
  await fc.assert(
    fc.asyncProperty(faultSteps(), fc.boolean(), async (steps, isMutedAtTheEnd) => {
      await new LatchFaultScenario(await simulateRedis(3)).run(steps, isMutedAtTheEnd);
    }),
    { numRuns: 120 },
  );
}, 120_000);
