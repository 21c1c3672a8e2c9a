import type { Crew } from "./workers.ts";
import { seedsFrom } from "./seeds.ts";
import { add, emptyTally, type Failure, type Tally } from "../report/tally.ts";

export interface Campaign {
  /** The first. */
  readonly seed: number;
  readonly runs: number;
  /** The engine, kind or weather that is played; null: all. */
  readonly only: string | null;
  readonly stopAtFirst: boolean;
  /** Ends it early: what is under way is played to its end. */
  readonly stop: AbortSignal;
}

export interface Result {
  readonly tally: Tally;
  /** By seed. */
  readonly failed: readonly Failure[];
}

/** How many seeds a member of the crew is given at a time. */
const chunkSize = 10;

/** Plays the schedules of all seeds. Where it stops at the first that fails, all before that one are played. */
export async function campaign(
  crew: Crew,
  { seed, runs, only, stopAtFirst, stop }: Campaign,
  progress: (result: Result) => void,
): Promise<Result> {
  const tally = emptyTally();
  const failed: Failure[] = [];
  const seeds = seedsFrom(seed, only);
  let left = runs;
  const work = async (member: number): Promise<void> => {
    while (left > 0 && !stop.aborted && !(stopAtFirst && failed.length > 0)) {
      const size = Math.min(chunkSize, left);
      left -= size;
      const chunk = Array.from({ length: size }, () => seeds.next().value as number);
      const played = await crew.play(member, chunk);
      add(tally, played.tally);
      failed.push(...played.failed);
      progress({ tally, failed });
    }
  };
  await Promise.all(Array.from({ length: crew.size }, (_, member) => work(member)));
  failed.sort((one, other) => one.seed - other.seed);
  return { tally, failed };
}
