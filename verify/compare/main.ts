import { runMatrix, type CellResult } from "./grid.ts";
import { exitOnSignals, optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { allPassed, toText } from "./report.ts";

async function main(): Promise<void> {
  const options = optionsOrExit("compare", usage, parseOptions);
  const results = await compare(options);
  process.stdout.write(
    options.json ? `${JSON.stringify(results, null, 2)}\n` : `\n${toText(results, options)}`,
  );
  process.exitCode = allPassed(results) ? 0 : 1;
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

exitOnSignals();

await main();
