import fc from "fast-check";
import { test } from "vitest";

import { ReentrantScenarioPlayer } from "../support/reentrant-player.ts";
import { steps, type Step } from "../support/reentrant-steps.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

const patiently = { acquire: "lease", ttlMs: 850, renew: true, waitMs: Infinity } as const;
const session = { by: 1, as: { session: "s" } };

/** Rare by chance: the requesting caller of a session aborts, and the next caller requests until its own deadline. */
const secondAsks: Step[] = [
  { ...patiently, by: 0, as: null },
  { ...patiently, ...session },
  { ...patiently, ...session, waitMs: 520 },
  { advance: 400 },
  { abort: 1 },
  { advance: 400 },
];

test("in memory sessions and works agree with the model after every step", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await new ReentrantScenarioPlayer(simulateMemory(2, { handover: false })).run(all);
    }),
    { numRuns: 150, examples: [[secondAsks]] },
  );
});

test("on Redis no caller shares the hold of another session, fencing tokens rise, and nothing is left at the end", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await new ReentrantScenarioPlayer(await simulateRedis(2)).run(all);
    }),
    { numRuns: 80 },
  );
});
