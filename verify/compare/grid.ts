import { fileURLToPath } from "node:url";

import { runInChildProcess } from "./process-cell.ts";
import type { FailureName } from "./failures.ts";
import type { Outcome } from "./outcome.ts";
import type { LibraryName } from "./roster.ts";
import { scenarios } from "./scenarios.ts";

/** One failure with one library. */
export interface ScenarioCell {
  readonly failure: FailureName;
  readonly library: LibraryName;
}

export interface CellResult extends ScenarioCell {
  readonly outcome: Outcome;
}

const program = fileURLToPath(new URL("./cell.js", import.meta.url));

/** Most scenarios spend most of their time waiting. */
const lightWorkers = 2;

/** Runs all cells, and reports each result as soon as the cell ends. Heavy cells run alone. */
export async function runMatrix(
  cells: readonly ScenarioCell[],
  onResult: (result: CellResult) => void,
): Promise<CellResult[]> {
  const light = cells.filter(({ failure }) => scenarios[failure].isHeavy !== true);
  const heavy = cells.filter(({ failure }) => scenarios[failure].isHeavy === true);
  return [...(await runCells(light, lightWorkers, onResult)), ...(await runCells(heavy, 1, onResult))];
}

async function runCells(
  cells: readonly ScenarioCell[],
  workers: number,
  onResult: (result: CellResult) => void,
): Promise<CellResult[]> {
  const pending = [...cells];
  const results: CellResult[] = [];
  const worker = async (): Promise<void> => {
    for (let cell = pending.shift(); cell !== undefined; cell = pending.shift()) {
      const { failure, library } = cell;
      const outcome = await runInChildProcess(program, [failure, library], scenarios[failure].withinMs);
      const result = { failure, library, outcome };
      results.push(result);
      onResult(result);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return results;
}
