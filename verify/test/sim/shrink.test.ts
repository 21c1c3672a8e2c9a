import { expect, test } from "vitest";

import type { Check } from "../../sim/judge/findings.ts";
import { scheduleOf } from "../../sim/plan/planner.ts";
import { isFlawless } from "../../sim/plan/schedule.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";
import { shrink } from "../../sim/shrink/shrink.ts";
import { play } from "../../sim/run/world.ts";
import { defects } from "./defects.ts";

/** Where a defect shows itself: where nothing goes wrong, unless it is said here. */
const places: Partial<Readonly<Record<Check, string>>> = {
  loss: "storm", // else no lease is lost
  room: "semaphore,server",
  several: "all,memory",
  nesting: "reentrant,calm",
  count: "latch",
  latch: "latch,storm",
};

test.each(Object.keys(defects) as Check[])(
  "a driver with a defect is found by the check of %s",
  async (check) => {
    const found: string[] = [];
    for (const seed of seedsFrom(1, places[check] ?? "calm")) {
      const { findings } = await play(scheduleOf(seed), { alter: defects[check]() });
      found.push(...findings.map((finding) => finding.check));
      if (found.includes(check) || seed > 2_000) {
        break;
      }
    }
    expect(found).toContain(check);
  },
);

test("a schedule that fails is shrunk to the few steps that matter, and still fails", async () => {
  const seed = 4;
  const playDefective = async (schedule: ReturnType<typeof scheduleOf>) =>
    (await play(schedule, { alter: defects.exclusion() })).findings;
  const schedule = scheduleOf(seed);
  const sizes: number[] = [];
  const shrunk = await shrink(schedule, {
    play: playDefective,
    mayGoOn: () => true,
    progress: ({ steps }) => sizes.push(steps.length),
  });
  expect(shrunk?.isDone).toBe(true);
  expect(shrunk?.finding.check).toBe("exclusion");
  expect(schedule.steps.length).toBeGreaterThan(10);
  expect(shrunk?.schedule.steps.length).toBeLessThanOrEqual(2);
  expect(shrunk?.schedule.clients.length).toBeLessThanOrEqual(2);
  expect(sizes.at(-1)).toBe(shrunk?.schedule.steps.length);
});

test("a schedule that does not fail is not shrunk, and no more is played than there is time for", async () => {
  const schedule = scheduleOf(1);
  expect(isFlawless(schedule)).toBe(false);
  const options = { mayGoOn: () => false, progress: () => undefined };
  expect(await shrink(schedule, { ...options, play: async () => [] })).toBeUndefined();
  let plays = 0;
  const shrunk = await shrink(schedule, {
    ...options,
    play: async () => {
      plays += 1;
      return [{ check: "order", at: 0, text: "planted" }];
    },
  });
  expect(plays).toBe(1);
  expect(shrunk).toMatchObject({ schedule, isDone: false, plays: 1 });
});
