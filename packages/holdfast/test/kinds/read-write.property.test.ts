import fc from "fast-check";
import { test } from "vitest";

import { SharedScenarioPlayer } from "../support/shared-player.ts";
import { stepsOf, type SharedKind, type Step } from "../support/shared-steps.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

/** A writer needs every permit. */
const everybody = 2 ** 31;

const readWrite: SharedKind = {
  limit: everybody,
  weights: [1, 1, everybody],
  limits: [everybody],
  lockable: (locks, key, weight) => locks.readWrite(key)[weight === 1 ? "read" : "write"],
  setLimit: async () => undefined,
};

const patiently = { ttlMs: 401, waitMs: Infinity, renew: true };

/** Rare by chance: a lost reply, a new reader, a repeated downgrade, the release of that reader, and a waiting writer. */
const downgradedTwice: Step[] = [
  { acquire: everybody, by: 0, ...patiently },
  { acquire: 1, by: 1, ...patiently },
  { downgrade: 0, isAnswerLost: true },
  { advance: 400 },
  { acquire: everybody, by: 2, ...patiently },
  { release: 0 },
  { advance: 600 },
];

test("in memory readers and writers agree with the model after every step", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(readWrite, { downgrade: 1 }), async (steps) => {
      await new SharedScenarioPlayer(simulateMemory(3), readWrite, true).run(steps);
    }),
    { numRuns: 120 },
  );
});

test("on Redis readers exclude writers, no waiter is skipped, and nothing is left at the end", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(readWrite, { downgrade: 1 }), async (steps) => {
      await new SharedScenarioPlayer(await simulateRedis(3), readWrite, true).run(steps);
    }),
    { numRuns: 60 },
  );
});

test("with lost and repeated replies and notifications readers exclude writers, and every waiter is granted", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(readWrite, { downgrade: 2, fault: 3 }), async (steps) => {
      await new SharedScenarioPlayer(await simulateRedis(3, 150), readWrite, false).run(steps);
    }),
    { numRuns: 80, examples: [[downgradedTwice]] },
  );
});
