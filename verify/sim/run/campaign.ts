import type { WorkerPool } from "./workers.ts";
import { seedsFrom } from "./seeds.ts";
import { add, emptyTally, type Failure, type Tally } from "../report/tally.ts";

export interface SeedRun {
  /** The first seed. */
  readonly seed: number;
  readonly runs: number;
  /** Only schedules of this engine, kind or scenario are run; null: all. */
  readonly only: string | null;
  readonly stopAtFirst: boolean;
  /** Ends the run early, after the schedules in progress. */
  readonly stop: AbortSignal;
}

export interface SeedRunResult {
  readonly tally: Tally;
  /** In the order of seeds. */
  readonly failed: readonly Failure[];
}

/** How many seeds a worker gets at a time. */
const chunkSize = 10;

/** Runs the schedules of all seeds. With `stopAtFirst`, all seeds before the first failure are run. */
export async function runSeeds(
  pool: WorkerPool,
  { seed, runs, only, stopAtFirst, stop }: SeedRun,
  progress: (result: SeedRunResult) => void,
): Promise<SeedRunResult> {
  const tally = emptyTally();
  const failed: Failure[] = [];
  const seeds = seedsFrom(seed, only);
  let remaining = runs;
  const work = async (worker: number): Promise<void> => {
    while (remaining > 0 && !stop.aborted && !(stopAtFirst && failed.length > 0)) {
      const size = Math.min(chunkSize, remaining);
      remaining -= size;
      const chunk = Array.from({ length: size }, () => seeds.next().value as number);
      const result = await pool.run(worker, chunk);
      add(tally, result.tally);
      failed.push(...result.failed);
      progress({ tally, failed });
    }
  };
  await Promise.all(Array.from({ length: pool.size }, (_, worker) => work(worker)));
  failed.sort((one, other) => one.seed - other.seed);
  return { tally, failed };
}
