import { parseArgs } from "node:util";

import { selectedEntries } from "../options.ts";
import { failureNames, type FailureName } from "./failures.ts";
import { libraryNames, type LibraryName } from "./roster.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly failures: readonly FailureName[];
  readonly libraries: readonly LibraryName[];
}

export const usage: string = `Usage: npm run compare -- [options]

Runs each failure that users of lock libraries have met against each library, on real servers, and prints the results.

  --only A,B       the failures to run (default: all):
${failureNames.map((name) => `                   ${name}`).join("\n")}
  --library A,B    the libraries to run (default: all):
${libraryNames.map((name) => `                   ${name}`).join("\n")}
  --json           the results as JSON on stdout
  --help           this text

Exits with 1 if holdfast fails an applicable scenario, or if a scenario could not run.
`;

/** @throws {TypeError} with the name of the option that is invalid */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: failureNames.join(",") },
      library: { type: "string", default: libraryNames.join(",") },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  return {
    help: values.help,
    json: values.json,
    failures: selectedNames("only", values.only, failureNames),
    libraries: selectedNames("library", values.library, libraryNames),
  };
}

function selectedNames<Name extends string>(
  option: string,
  text: string,
  known: readonly Name[],
): readonly Name[] {
  const entries = known.map((name) => ({ name }));
  return selectedEntries(option, text, entries).map(({ name }) => name);
}
