import { catalogue } from "./catalogue.ts";
import { pendingMutants } from "./pending.ts";
import { killAll } from "./child.ts";
import { removeCopies } from "./copy.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { verdictLine, mutantList, levelMatrix, pendingList, summaryOf, verdictTable } from "./report.ts";
import { randomReportOf } from "./random/report.ts";
import { randomMutants } from "./random/sample.ts";
import { repositoryRoot } from "./root.ts";
import { run } from "./run.ts";
import { killingFinding, type Verdict } from "./trial.ts";

async function main(options: ResolvedOptions): Promise<boolean> {
  const { workers, allLevels, expectedOnly, json, random, seed } = options;
  const root = repositoryRoot();
  const mutants = random === null ? options.mutants : randomMutants(root, random, seed);
  let judgedCount = 0;
  const verdicts = await run(mutants, {
    root,
    workers,
    mode: allLevels ? "all" : random === null && !expectedOnly ? "first" : "expected",
    checksUnmutated: random === null, // people review the survivors of a random run
    print: logLine,
    onVerdict: (verdict) => {
      judgedCount += 1;
      logLine(`${judgedCount} of ${mutants.length} ${verdictLine(verdict)}`);
    },
  });
  if (json) {
    writeLine(JSON.stringify(verdicts, null, 2));
  } else if (random !== null) {
    writeLine(randomReportOf(verdicts, seed));
  } else {
    const report = allLevels ? levelMatrix(verdicts) : verdictTable(verdicts);
    writeLine(`${report}\n\n${pendingList(pendingMutants)}\n\n${summaryOf(verdicts)}`);
  }
  return random === null ? verdicts.every(isKilled) : verdicts.every(isJudged);
}

function isJudged({ problem, cause }: Verdict): boolean {
  return problem === undefined || cause !== undefined;
}

function isKilled(verdict: Verdict): boolean {
  return verdict.problem === undefined && killingFinding(verdict) !== undefined;
}

async function start(args: readonly string[]): Promise<number> {
  let options;
  try {
    options = parseOptions(args, catalogue);
  } catch (error) {
    logLine(`verify:mutants: ${(error as Error).message}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (options.list) {
    writeLine(`${mutantList(options.mutants)}\n\n${pendingList(pendingMutants)}`);
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

process.exitCode = await start(process.argv.slice(2));
