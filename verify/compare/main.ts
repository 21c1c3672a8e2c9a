import { runMatrix, type CellResult } from "./grid.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { allPassed, toText } from "./report.ts";

async function main(args: readonly string[]): Promise<void> {
  const options = optionsOf(args);
  if (options.help) {
    process.stdout.write(usage);
    return;
  }
  const results = await compare(options);
  process.stdout.write(
    options.json ? `${JSON.stringify(results, null, 2)}\n` : `\n${toText(results, options)}`,
  );
  process.exitCode = allPassed(results) ? 0 : 1;
}

function optionsOf(args: readonly string[]): ResolvedOptions {
  try {
    return parseOptions(args);
  } catch (error) {
    process.stderr.write(`compare: ${(error as Error).message}\n`);
    process.exit(2);
  }
}

function compare({ failures, libraries }: ResolvedOptions): Promise<CellResult[]> {
  const cells = failures.flatMap((failure) => libraries.map((library) => ({ failure, library })));
  let completed = 0;
  return runMatrix(cells, ({ failure, library, outcome: { verdict, how } }) => {
    completed += 1;
    const text = how === "" ? verdict : `${verdict} (${how.split("\n", 1)[0]})`;
    process.stderr.write(`${completed}/${cells.length} ${failure}, ${library}: ${text}\n`);
  });
}

// Child processes end with this process, on `exit`.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => process.exit(130));
}

await main(process.argv.slice(2));
