import { planSchedule } from "../plan/planner.ts";
import type { Schedule } from "../plan/schedule.ts";
import { count, emptyTally, type Failure, type Tally } from "../report/tally.ts";
import { runSchedule } from "./world.ts";

export interface SeedResults {
  readonly tally: Tally;
  readonly failed: readonly Failure[];
}

/** Runs the schedules of the seeds, one after the other. */
export async function runSeedBatch(seeds: readonly number[]): Promise<SeedResults> {
  const tally = emptyTally();
  const failed: Failure[] = [];
  for (const seed of seeds) {
    const schedule = planSchedule(seed);
    const report = await runSchedule(schedule);
    count(tally, schedule, report);
    if (report.findings.length > 0) {
      failed.push({ seed, findings: report.findings.slice(0, maxFindings) });
    }
  }
  return { tally, failed };
}

/** How many findings of a schedule are reported, because one failure usually causes further findings. */
const maxFindings = 5;

/** The seeds from the first one whose schedules match the engines, kinds and scenarios in `only`; null: all. */
export function* seedsFrom(first: number, only: string | null): Generator<number> {
  for (let seed = first; ; seed += 1) {
    if (only === null || matches(planSchedule(seed), only)) {
      yield seed;
    }
  }
}

function matches({ engine, kind, scenario }: Schedule, names: string): boolean {
  return names.split(",").every((name) => name === engine || name === kind || name === scenario);
}
