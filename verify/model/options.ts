import { parseArgs } from "node:util";
import { configurations } from "./configurations.ts";
import { mutants } from "./mutants.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly long: boolean;
  readonly mutants: boolean;
  readonly spin: boolean;
  readonly schedules: boolean;
  /** Names of what to explore; `null`: all. */
  readonly only: ReadonlySet<string> | null;
}

export const usage: string = `Usage: npm run verify:model -- [options]

Goes through every state of the protocol within bounds, and fails where a promise is broken.

  --long         the larger bounds as well: ten to fifteen minutes, up to 1.5 GB
  --mutants      protocols with one broken rule instead: each has to be caught
  --schedules    prints how each mutant falls, step by step
  --only A,B     only those with these names, also of the long ones; with --mutants
                 names of mutants
  --spin         the same core in Promela, checked by Spin (Debian's package spin) and cc
  --help         this text

Explorations:${wrapped(configurations.filter(({ isLong }) => !isLong).map(({ name }) => name))}
Long:${wrapped(configurations.filter(({ isLong }) => isLong).map(({ name }) => name))}
Mutants:${wrapped(mutants.map(({ name }) => name))}
`;

/** Throws a `TypeError` that names the option. */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean", default: false },
      long: { type: "boolean", default: false },
      mutants: { type: "boolean", default: false },
      spin: { type: "boolean", default: false },
      schedules: { type: "boolean", default: false },
      only: { type: "string" },
    },
  });
  const { help, long, spin, schedules } = values;
  const items = values.mutants ? mutants : configurations;
  return { help, long, mutants: values.mutants, spin, schedules, only: namesFrom(values.only, items) };
}

function namesFrom(
  text: string | undefined,
  items: readonly { readonly name: string }[],
): ReadonlySet<string> | null {
  if (text === undefined) {
    return null;
  }
  const known = items.map(({ name }) => name);
  const names = text.split(",").map((name) => name.trim());
  const unknownName = names.find((name) => !known.includes(name));
  if (unknownName !== undefined) {
    throw new TypeError(
      `Expected --only to be some of ${known.join(", ")}, got ${JSON.stringify(unknownName)}`,
    );
  }
  return new Set(names);
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
