import { expect, test } from "vitest";

import { scheduleOf } from "../sim/planner.ts";
import { play } from "../sim/world.ts";
import type { Schedule } from "../sim/schedule.ts";

const batchSize = 50;
/** HOLDFAST_SCHEDULES: how many schedules are played; HOLDFAST_SEED: the seed of the first, to play another part or one again. */
const scheduleCount = Number(process.env["HOLDFAST_SCHEDULES"] ?? 300);
const firstSeed = Number(process.env["HOLDFAST_SEED"] ?? 1);

for (let first = firstSeed; first < firstSeed + scheduleCount; first += batchSize) {
  const last = Math.min(first + batchSize, firstSeed + scheduleCount) - 1;
  test(`whatever happens nobody holds what another holds, numbers rise, and who waits in peace is served: seeds ${first} to ${last}`, async () => {
    const wrong: string[] = [];
    let grants = 0;
    for (let seed = first; seed <= last; seed += 1) {
      const schedule = scheduleOf(seed);
      const report = await play(schedule);
      grants += report.grants;
      if (report.failures.length > 0) {
        wrong.push(told(schedule, report.failures));
      }
    }
    expect(wrong.join("\n\n")).toBe("");
    expect(grants).toBeGreaterThan(last - first);
  }, 120_000);
}

test("a seed replays", async () => {
  const traces: string[][] = [[], []];
  for (const trace of traces) {
    await play(scheduleOf(18), (line) => trace.push(line));
  }
  expect(traces[0]).toEqual(traces[1]);
});

/** With all that is needed to see it again. */
function told(schedule: Schedule, failures: readonly string[]): string {
  const { seed, weather, steps, ...setup } = schedule;
  const planned = steps.map((step) => `  ${JSON.stringify(step)}`);
  return [
    `seed ${seed} (${weather}):`,
    ...failures.slice(0, 5).map((failure) => `  ${failure}`),
    `  ${JSON.stringify(setup)}`,
    ...planned,
  ].join("\n");
}
