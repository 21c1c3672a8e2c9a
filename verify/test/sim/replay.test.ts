import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { expect, test } from "vitest";

import { planSchedule } from "../../sim/plan/planner.ts";
import { replay } from "../../sim/run/replay.ts";
import { engines, scenarios, type Schedule } from "../../sim/plan/schedule.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";

const program = fileURLToPath(new URL("../../dist/sim/main.js", import.meta.url));

test.each([...engines, ...scenarios])("two runs of a schedule of %s have the same events", async (kind) => {
  const seed = seedsFrom(1, kind).next().value as number;
  const schedules = [planSchedule(seed), JSON.parse(JSON.stringify(planSchedule(seed))) as Schedule];
  const traces: string[][] = [];
  for (const schedule of schedules) {
    const trace: string[] = [];
    await replay(schedule, (line) => trace.push(line));
    traces.push(trace);
  }
  expect(traces[0]?.length).toBeGreaterThan(10);
  expect(traces[1]).toEqual(traces[0]);
});

test("two processes compute the same hash for a seed, and another hash for another seed", async () => {
  const hashes = await Promise.all(
    ["18", "18", "19"].map(async (seed) => {
      const { stdout } = await promisify(execFile)(process.execPath, [program, "--trace", "--seed", seed]);
      return /^sha256 ([0-9a-f]{64})$/m.exec(stdout)?.[1];
    }),
  );
  expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(hashes[1]).toBe(hashes[0]);
  expect(hashes[2]).not.toBe(hashes[0]);
});
