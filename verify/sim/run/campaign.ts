import type { WorkerPool } from "./workers.ts";
import { seedsFrom } from "./seeds.ts";
import { add, emptyTally, type Failure, type Tally } from "../report/tally.ts";

export interface SeedRun {
  /** The first. */
  readonly seed: number;
  readonly runs: number;
  /** The engine, kind or weather that is played; null: all. */
  readonly only: string | null;
  readonly stopAtFirst: boolean;
  /** Ends it early: what is under way is played to its end. */
  readonly stop: AbortSignal;
}

export interface SeedRunResult {
  readonly tally: Tally;
  /** By seed. */
  readonly failed: readonly Failure[];
}

/** How many seeds a member of the crew is given at a time. */
const chunkSize = 10;

/** Plays the schedules of all seeds. Where it stops at the first that fails, all before that one are played. */
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
      const played = await pool.run(worker, chunk);
      add(tally, played.tally);
      failed.push(...played.failed);
      progress({ tally, failed });
    }
  };
  await Promise.all(Array.from({ length: pool.size }, (_, worker) => work(worker)));
  failed.sort((one, other) => one.seed - other.seed);
  return { tally, failed };
}
