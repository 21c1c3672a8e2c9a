import { parseArgs } from "node:util";

import { selectedEntries } from "../options.ts";
import { configurations } from "./configurations.ts";
import { mutants } from "./mutants.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly long: boolean;
  readonly mutants: boolean;
  readonly schedules: boolean;
  /** Names of explorations; `null`: all. */
  readonly only: ReadonlySet<string> | null;
}

export const usage: string = `Usage: npm run verify:model -- [options]

Explores every state of the protocol within bounds, and fails if an invariant is violated.

  --long         also the larger bounds: ten to fifteen minutes, up to 1.5 GB
  --mutants      protocols with one broken rule instead: each must be detected
  --schedules    prints the violation of each mutant, step by step
  --only A,B     only the explorations with these names, long ones included;
                 with --mutants the names of mutants
  --help         this text

Explorations:${wrapped(configurations.filter(({ isLong }) => !isLong).map(({ name }) => name))}
Long:${wrapped(configurations.filter(({ isLong }) => isLong).map(({ name }) => name))}
Mutants:${wrapped(mutants.map(({ name }) => name))}
`;

/** @throws {TypeError} with the name of the option that is invalid */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean", default: false },
      long: { type: "boolean", default: false },
      mutants: { type: "boolean", default: false },
      schedules: { type: "boolean", default: false },
      only: { type: "string" },
    },
  });
  const { help, long, schedules } = values;
  const items: readonly { readonly name: string }[] = values.mutants ? mutants : configurations;
  const names = selectedEntries("only", values.only, items).map(({ name }) => name);
  const only = values.only === undefined ? null : new Set(names);
  return { help, long, mutants: values.mutants, schedules, only };
}

function wrapped(names: readonly string[]): string {
  const lines = [""];
  for (const name of names) {
    const line = lines.at(-1) ?? "";
    const longer = line === "" ? name : `${line}, ${name}`;
    if (longer.length > 76) {
      lines[lines.length - 1] = `${line},`;
      lines.push(name);
    } else {
      lines[lines.length - 1] = longer;
    }
  }
  return lines.map((line) => `\n  ${line}`).join("");
}
