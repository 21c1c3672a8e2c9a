import { parseArgs } from "node:util";

import { integerOption, selectedEntries } from "../options.ts";
import { pairs, type Pair } from "./pairs.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly isInstallOnly: boolean;
  readonly pairs: readonly Pair[];
  readonly seconds: number;
  readonly rounds: number;
  readonly hasFaults: boolean;
  /** The folder of the installed libraries. null: the default. */
  readonly cache: string | null;
  /** The folder of the histories. null: a new folder, named by the date. */
  readonly folder: string | null;
}

export const usage: string = `Usage: npm run verify:interop -- [options]

Runs this library and another one on the same lock: two processes of each, with one key. Judges the history by the
rules of the chaos checker, and measures the hand-over times. Then kills and freezes processes of both.

  --only A,B     the libraries (default: all):
${pairs.map(({ name }) => `                   ${name}`).join("\n")}
  --seconds N    duration of the contention (default: 30)
  --rounds N     hand-overs in each direction (default: 50)
  --no-faults    neither kills nor freezes processes
  --install      installs the libraries, and runs nothing
  --cache F      folder of the libraries (default: node_modules/.cache/interop)
  --folder F     folder of the histories (default: verify/interop/runs/<date>)
  --json         the results as JSON on stdout
  --help         this text

Python needs pip, Java 17 needs Maven, Go 1.26, Rust cargo. The PHP libraries are packages of Debian, and need root.
Exits with 1 if a pair fails, or if a library could not be installed.
`;

/** @throws {TypeError} with the name of the option that is invalid */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      seconds: { type: "string", default: "30" },
      rounds: { type: "string", default: "50" },
      "no-faults": { type: "boolean", default: false },
      install: { type: "boolean", default: false },
      cache: { type: "string" },
      folder: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  return {
    help: values.help,
    json: values.json,
    isInstallOnly: values.install,
    pairs: selectedEntries("only", values.only, pairs),
    seconds: integerOption("seconds", values.seconds, [1, 3_600]),
    rounds: integerOption("rounds", values.rounds, [1, 10_000]),
    hasFaults: !values["no-faults"],
    cache: values.cache ?? null,
    folder: values.folder ?? null,
  };
}
