import fc from "fast-check";
import { test } from "vitest";

import { SharedScenarioPlayer } from "../support/shared-player.ts";
import { stepsOf, type SharedKind } from "../support/shared-steps.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

const semaphore: SharedKind = {
  limit: 3,
  weights: [1, 1, 2, 3],
  limits: [1, 2, 3, 4],
  lockable: (locks, key, permits, limit) => {
    const own = locks.semaphore(key, { limit });
    return {
      ...own,
      tryAcquire: (options) => own.tryAcquire({ ...options, permits }),
      acquire: (options) => own.acquire({ ...options, permits }),
    };
  },
  setLimit: (locks, key, limit, wanted) => locks.semaphore(key, { limit }).setLimit(wanted),
};

test("in memory grants agree with the model after every step", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(semaphore, { setLimit: 1 }), async (steps) => {
      await new SharedScenarioPlayer(simulateMemory(3, { handover: false }), semaphore, true).run(steps);
    }),
    { numRuns: 120 },
  );
});

test("with hand-overs the limit is never exceeded, and every waiter is granted", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(semaphore, { setLimit: 1 }), async (steps) => {
      await new SharedScenarioPlayer(simulateMemory(3), semaphore, true, true).run(steps);
    }),
    { numRuns: 200 },
  );
});

test("on Redis the limit is never exceeded, no waiter is skipped, and nothing is left at the end", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(semaphore, { setLimit: 1 }), async (steps) => {
      await new SharedScenarioPlayer(await simulateRedis(3, 1_000, { handover: false }), semaphore, true).run(
        steps,
      );
    }),
    { numRuns: 60 },
  );
});

test("with lost and repeated replies and notifications the limit is never exceeded, and every waiter is granted", async () => {
  await fc.assert(
    fc.asyncProperty(stepsOf(semaphore, { fault: 3 }), async (steps) => {
      await new SharedScenarioPlayer(await simulateRedis(3, 150), semaphore, false, true).run(steps);
    }),
    { numRuns: 80 },
  );
});
