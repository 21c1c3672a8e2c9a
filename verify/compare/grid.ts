import { fileURLToPath } from "node:url";

import { runApart } from "./process-cell.ts";
import type { FailureName } from "./failures.ts";
import type { Outcome } from "./outcome.ts";
import type { LibraryName } from "./roster.ts";
import { scenarios } from "./scenarios.ts";

/** One failure with one library. */
export interface Cell {
  readonly failure: FailureName;
  readonly library: LibraryName;
}

export interface Result extends Cell {
  readonly outcome: Outcome;
}

const program = fileURLToPath(new URL("./cell.js", import.meta.url));

/** Most scenarios wait most of the time. */
const atOnce = 2;

/** Runs all cells, those that keep the machine busy one by one, and tells of each result as it comes. */
export async function runGrid(cells: readonly Cell[], tell: (result: Result) => void): Promise<Result[]> {
  const light = cells.filter(({ failure }) => scenarios[failure].isHeavy !== true);
  const heavy = cells.filter(({ failure }) => scenarios[failure].isHeavy === true);
  return [...(await runSome(light, atOnce, tell)), ...(await runSome(heavy, 1, tell))];
}

async function runSome(
  cells: readonly Cell[],
  lanes: number,
  tell: (result: Result) => void,
): Promise<Result[]> {
  const waiting = [...cells];
  const results: Result[] = [];
  const lane = async (): Promise<void> => {
    for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift()) {
      const { failure, library } = cell;
      const outcome = await runApart(program, [failure, library], scenarios[failure].withinMs);
      const result = { failure, library, outcome };
      results.push(result);
      tell(result);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}
