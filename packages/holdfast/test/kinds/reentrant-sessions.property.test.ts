import fc from "fast-check";
import { test } from "vitest";

import { ReentrantScenarioPlayer } from "../support/reentrant-player.ts";
import { steps, type Step } from "../support/reentrant-steps.ts";
import { simulateMemory, simulateRedis } from "../support/simulated-engines.ts";

const patiently = { ask: "lease", ttlMs: 850, renew: true, waitMs: Infinity } as const;
const session = { by: 1, as: { session: "s" } };

/** Seldom met by chance: who asks for its session gives up, and the next of it does, for no longer than it may. */
const secondAsks: Step[] = [
  { ...patiently, by: 0, as: null },
  { ...patiently, ...session },
  { ...patiently, ...session, waitMs: 520 },
  { advance: 400 },
  { abort: 1 },
  { advance: 400 },
];

test("in memory sessions and works enter, wait, lose and leave as the model says, at every moment", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await new ReentrantScenarioPlayer(simulateMemory(2, { handover: false })).run(all);
    }),
    { numRuns: 150, examples: [[secondAsks]] },
  );
}, 120_000);

test("on Redis nobody enters another's nest, numbers rise, and nothing is left at the end", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      await new ReentrantScenarioPlayer(await simulateRedis(2)).run(all);
    }),
    { numRuns: 80 },
  );
}, 120_000);
