import { parseArgs } from "node:util";

import type { Mutant } from "./mutant.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly list: boolean;
  readonly json: boolean;
  readonly allLevels: boolean;
  readonly workers: number;
  readonly mutants: readonly Mutant[];
  /** Mutants of chance instead, so many; null: those of the catalogue. */
  readonly random: number | null;
  /** Decides which. */
  readonly seed: number;
}

export const usage: string = `Usage: npm run verify:mutants -- [options]

Breaks the library on purpose, in a copy, once for each mutant, and looks which level notices:
the simulation, the tests of rules inside the process, the tests on real servers.
Exit code 1: a mutant survives, or could not be judged.

  --only NAME      only mutants with this in their names; several separated by commas
  --random N       N mutants of chance instead: an operator, a constant or a statement of the library
                   is changed. Survivors are reported, and are no failure: some change nothing.
  --seed S         decides which (default: 1)
  --workers N      how many are tried at the same time, each in a copy of its own (default: 2)
  --all-levels     tries each mutant on every level as a whole, and prints who kills it where;
                   takes minutes for each
  --list           prints the mutants, and tries none
  --json           the verdicts as JSON
  --help           this text
`;

/** Throws a `TypeError` that names the option. */
export function parseOptions(args: readonly string[], catalogue: readonly Mutant[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      random: { type: "string" },
      seed: { type: "string", default: "1" },
      workers: { type: "string", default: "2" },
      "all-levels": { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { help, list, json, only } = values;
  return {
    help,
    list,
    json,
    allLevels: values["all-levels"],
    workers: parseInteger("workers", values.workers, [1, 64]),
    random: values.random === undefined ? null : parseInteger("random", values.random, [1, 10_000]),
    seed: parseInteger("seed", values.seed, [0, 2 ** 27]),
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

function parseInteger(option: string, text: string, [low, high]: readonly [number, number]): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < low || value > high) {
    throw invalidOption(option, `an integer from ${low} to ${high}`, text);
  }
  return value;
}

function invalidOption(option: string, expected: string, given: string): TypeError {
  return new TypeError(`Expected --${option} to be ${expected}, got ${JSON.stringify(given)}`);
}
