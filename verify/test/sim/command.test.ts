import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import { runSeeds } from "../../sim/run/campaign.ts";
import type { WorkerPool } from "../../sim/run/workers.ts";
import { parseOptions } from "../../sim/options.ts";
import { planSchedule } from "../../sim/plan/planner.ts";
import { seedsFrom } from "../../sim/run/seeds.ts";
import { emptyTally } from "../../sim/report/tally.ts";

const program = fileURLToPath(new URL("../../dist/sim/main.js", import.meta.url));

function run(...args: readonly string[]): { code: number | null; out: string; errors: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
  return { code: status, out: stdout, errors: stderr };
}

test("a summary has the figures of all schedules, also with several processes", () => {
  const { code, out } = run("--runs", "40", "--seed", "7", "--workers", "2", "--json");
  const summary = JSON.parse(out) as Record<string, number>;
  expect(code).toBe(0);
  expect(summary).toMatchObject({ runs: 40, firstSeed: 7, failures: 0, failed: [] });
  expect(summary["grants"]).toBeGreaterThan(40);
  expect(summary["operations"]).toBeGreaterThan(summary["grants"] ?? 0);
  expect(Object.keys(summary["faults"] ?? {})).toContain("cut");
  expect(Object.keys(summary["kinds"] ?? {})).toEqual(expect.arrayContaining(["mutex", "read-write"]));
});

test("--only restricts the schedules that are run", () => {
  const { out } = run("--runs", "10", "--only", "memory", "--workers", "1");
  expect(out).toMatch(/^10 schedules from seed 1 on/);
  expect(out).toMatch(/^ {2}memory, /m);
  expect(out).not.toMatch(/^ {2}(quorum|server), /m);
  const both = run("--runs", "5", "--only", "semaphore,server", "--workers", "1");
  expect(both.out).toMatch(/^ {2}semaphore +5$/m);
  expect(both.out).not.toMatch(/^ {2}(memory|mutex)/m);
});

test("--schedule runs a schedule from a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-sim-"));
  try {
    const file = join(folder, "schedule.json");
    writeFileSync(file, JSON.stringify(planSchedule(3)));
    const { code, out } = run("--schedule", file);
    expect(code).toBe(0);
    expect(out).toMatch(/grants, 0 findings\n$/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each([
  [["--runs", "0"], 'Expected --runs to be an integer from 1 to 100000000, got "0"'],
  [["--seed", "x"], 'Expected --seed to be an integer from 0 to 134217728, got "x"'],
  [
    ["--only", "rain"],
    'Expected --only to be one of quorum, server, memory, mutex, read-write, semaphore, all, reentrant, election, latch, storm, calm, lost-inquiries, lost-notifications, contention, process-death, reordered, full-memory, got "rain"',
  ],
  [["--trace", "--runs", "2"], 'Expected --runs to be 1 with --trace, got "2"'],
  [["--workers", ""], 'Expected --workers to be an integer from 1 to 256, got ""'],
  [["--shrink-seconds=-1"], 'Expected --shrink-seconds to be an integer from 0 to 3600, got "-1"'],
])("%j fails with a message about the option", (args, message) => {
  const { code, out, errors } = run(...args);
  expect({ code, out, errors }).toEqual({ code: 2, out: "", errors: `verify:sim: ${message}\n` });
});

test("--long runs a hundred thousand schedules", () => {
  expect(parseOptions(["--long"]).runs).toBe(100_000);
  expect(parseOptions(["--long", "--runs", "5"]).runs).toBe(5);
});

/** A worker pool that reports some seeds as failed, and runs no schedule. */
function fakePool(failing: readonly number[], played: number[]): WorkerPool {
  return {
    size: 1,
    run: async (_, seeds) => {
      played.push(...seeds);
      const failed = seeds
        .filter((seed) => failing.includes(seed))
        .map((seed) => ({ seed, findings: [{ check: "order", at: 0, text: "planted" } as const] }));
      return { tally: { ...emptyTally(), runs: seeds.length }, failed };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

const order = { seed: 1, runs: 100, only: null, stopAtFirst: false, stop: new AbortController().signal };

test("every seed is run once, and the failing seeds are reported in order", async () => {
  const played: number[] = [];
  const { tally, failed } = await runSeeds(fakePool([55, 23], played), order, () => undefined);
  expect(played).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  expect(tally.runs).toBe(100);
  expect(failed.map(({ seed }) => seed)).toEqual([23, 55]);
});

test("a run stops at the first failing seed with --stop-at-first, and after an abort", async () => {
  const played: number[] = [];
  const atFirst = { ...order, stopAtFirst: true };
  const { failed } = await runSeeds(fakePool([55, 23], played), atFirst, () => undefined);
  expect(failed.map(({ seed }) => seed)).toEqual([23]);
  expect(played.length).toBe(30);

  const controller = new AbortController();
  const { tally } = await runSeeds(fakePool([], []), { ...order, stop: controller.signal }, () => {
    controller.abort();
  });
  expect(tally.runs).toBe(10);
});

test("--only with an engine selects the seeds whose schedules use that engine", () => {
  const seeds = seedsFrom(1, "memory");
  const some = Array.from({ length: 5 }, () => seeds.next().value as number);
  expect(some.map((seed) => planSchedule(seed).engine)).toEqual(Array.from({ length: 5 }, () => "memory"));
});
