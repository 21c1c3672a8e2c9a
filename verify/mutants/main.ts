import { catalogue } from "./catalogue.ts";
import { killAll } from "./child.ts";
import { removeCopies } from "./copy.ts";
import { optionsOrExit } from "../options.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { mutantList, randomReportOf, summaryOf, verdictLine } from "./report.ts";
import { randomMutants } from "./random/sample.ts";
import { repositoryRoot } from "./root.ts";
import { run } from "./run.ts";
import { Sources } from "./sources.ts";
import { killingFinding, type Verdict } from "./trial.ts";

async function main(options: ResolvedOptions): Promise<boolean> {
  const { workers, random, seed } = options;
  const root = repositoryRoot();
  const mutants = random === null ? options.mutants : randomMutants(new Sources(root), random, seed);
  let judgedCount = 0;
  const verdicts = await run(mutants, {
    root,
    workers,
    checksUnmutated: random === null, // people review the survivors of a random run
    onVerdict: (verdict) => {
      judgedCount += 1;
      logLine(`${judgedCount} of ${mutants.length} ${verdictLine(verdict)}`);
    },
  });
  writeLine(random === null ? summaryOf(verdicts) : randomReportOf(verdicts, seed));
  return verdicts.every((verdict) => isRight(verdict, random !== null));
}

/** A random mutant may survive, but must be judged. */
function isRight(verdict: Verdict, isRandom: boolean): boolean {
  const { problem, cause } = verdict;
  return problem === undefined
    ? isRandom || killingFinding(verdict) !== undefined
    : isRandom && cause !== undefined;
}

async function start(): Promise<number> {
  const options = optionsOrExit("verify:mutants", usage, (args) => parseOptions(args, catalogue));
  if (options.list) {
    writeLine(mutantList(options.mutants));
    return 0;
  }
  try {
    return (await main(options)) ? 0 : 1;
  } catch (error) {
    logLine(`verify:mutants: ${(error as Error).message}`);
    return 1;
  }
}

function writeLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

function logLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    killAll();
    removeCopies();
    process.exit(130);
  });
}

process.exitCode = await start();
