import { parseArgs } from "node:util";

import { integerOption, invalidOption } from "../options.ts";
import type { Mutant } from "./mutant.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly list: boolean;
  readonly workers: number;
  readonly mutants: readonly Mutant[];
  /** The number of random mutants; null: the mutants of the catalogue. */
  readonly random: number | null;
  /** Determines the random mutants. */
  readonly seed: number;
}

export const usage: string = `Usage: npm run verify:mutants -- [options]

OperatorCalls a copy of the library once for each mutant, and runs the tests that the mutant names.
Exit code 1: a mutant survives, or could not be judged.

  --only NAME      only mutants with NAME in their names; separate several by commas
  --random N       N random mutants instead, each with a changed operator, constant or statement.
                   Survivors are reported, but are no failure, because some have no effect.
  --seed S         selects the random mutants (default: 1)
  --workers N      the number of concurrent runs, each in its own copy (default: 2)
  --list           prints the mutants, and runs none
  --help           this text
`;

/** @throws {TypeError} with the name of the option that is invalid */
export function parseOptions(args: readonly string[], catalogue: readonly Mutant[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      random: { type: "string" },
      seed: { type: "string", default: "1" },
      workers: { type: "string", default: "2" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { help, list, only } = values;
  return {
    help,
    list,
    workers: integerOption("workers", values.workers, [1, 64]),
    random: values.random === undefined ? null : integerOption("random", values.random, [1, 10_000]),
    seed: integerOption("seed", values.seed, [0, 2 ** 27]),
    mutants: only === undefined ? catalogue : selectMutants(only, catalogue),
  };
}

function selectMutants(only: string, catalogue: readonly Mutant[]): readonly Mutant[] {
  const parts = only.split(",").map((fragment) => fragment.trim());
  const unknownName = parts.find((fragment) => !catalogue.some(({ name }) => name.includes(fragment)));
  if (unknownName !== undefined) {
    throw invalidOption("only", "parts of names that --list prints", unknownName);
  }
  return catalogue.filter(({ name }) => parts.some((fragment) => name.includes(fragment)));
}
