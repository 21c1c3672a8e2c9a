import fc from "fast-check";
import { test } from "vitest";

import { LatchFaultScenario, faultSteps } from "../support/latch-faults.ts";
import { LatchScenarioPlayer, latchSteps } from "../support/latch-player.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

test("in memory a latch agrees with the model after every step", async () => {
  await fc.assert(
    fc.asyncProperty(latchSteps(), async (steps) => {
      await new LatchScenarioPlayer(simulateMemory(3)).run(steps);
    }),
    { numRuns: 300 },
  );
});

test("on Redis every count and wait ends as in the model, and nothing is left", async () => {
  await fc.assert(
    fc.asyncProperty(latchSteps(), async (steps) => {
      await new LatchScenarioPlayer(await simulateRedis(3)).run(steps);
    }),
    { numRuns: 120 },
  );
});

test("with lost and repeated replies and notifications each attempt counts once, and every wait ends", async () => {
  await fc.assert(
    fc.asyncProperty(faultSteps(), fc.boolean(), async (steps, isMutedAtTheEnd) => {
      await new LatchFaultScenario(await simulateRedis(3)).run(steps, isMutedAtTheEnd);
    }),
    { numRuns: 120, timeout: 20_000 }, // a wait that never ends is reported with its seed
  );
});
