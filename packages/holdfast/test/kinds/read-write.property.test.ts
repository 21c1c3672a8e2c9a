import fc from "fast-check";
import { test } from "vitest";

import { SharedScenarioPlayer } from "../support/shared-player.ts";
import { stepsOf, type SharedKind, type Step } from "../support/shared-steps.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

/** A writer takes all that there are. */
const everybody = 2 ** 31;

const readWrite: SharedKind = {
  limit: everybody,
  weights: [1, 1, everybody],
  limits: [everybody],
  lockable: (locks, key, weight) => locks.readWrite(key)[weight === 1 ? "read" : "write"],
  setLimit: async () => undefined,
};

const patiently = { ttlMs: 401, waitMs: Infinity, renew: true };

/** Seldom met by chance: the answer is lost, a reader comes in, the downgrade is sent again, that reader goes, a writer waits. */
const downgradedTwice: Step[] = [
  { ask: everybody, by: 0, ...patiently },
  { ask: 1, by: 1, ...patiently },
  { downgrade: 0, isAnswerLost: true },
  { advance: 400 },
  { ask: everybody, by: 2, ...patiently },
  { release: 0 },
  { advance: 600 },
];

test("in memory readers and writers are served as the model says, at every moment", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(readWrite, { downgrade: 1 }), async (steps) => {
      await new SharedScenarioPlayer(simulateMemory(3), readWrite, true).run(steps);
    }),
    { numRuns: 120 },
  );
}, 120_000);

test("on Redis readers exclude writers, nobody is passed over, and nothing is left at the end", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(readWrite, { downgrade: 1 }), async (steps) => {
      await new SharedScenarioPlayer(await simulateRedis(3), readWrite, true).run(steps);
    }),
    { numRuns: 60 },
  );
}, 120_000);

test("whatever answers and messages are lost or come twice, readers exclude writers, and all have their turn", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(readWrite, { downgrade: 2, fault: 3 }), async (steps) => {
      await new SharedScenarioPlayer(await simulateRedis(3, 150), readWrite, false).run(steps);
    }),
    { numRuns: 80, examples: [[downgradedTwice]] },
  );
}, 120_000);
