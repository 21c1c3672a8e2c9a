import { catalogue } from "./catalogue.ts";
import { notYet } from "./catalogue/not-yet.ts";
import { killAll } from "./child.ts";
import { removeCopies } from "./copy.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { lineOf, listOf, matrixOf, notYetOf, summaryOf, tableOf } from "./report.ts";
import { repositoryRoot } from "./root.ts";
import { run } from "./run.ts";
import { deathOf, type Verdict } from "./trial.ts";

async function main(options: ResolvedOptions): Promise<boolean> {
  const { mutants, workers, allLevels, json } = options;
  let judgedCount = 0;
  const verdicts = await run(mutants, {
    root: repositoryRoot(),
    workers,
    form: allLevels ? "all" : "first",
    checksUnmutated: true,
    say,
    judged: (verdict) => {
      judgedCount += 1;
      say(`${judgedCount} of ${mutants.length} ${lineOf(verdict)}`);
    },
  });
  const report = allLevels ? matrixOf(verdicts) : tableOf(verdicts);
  print(
    json ? JSON.stringify(verdicts, null, 2) : `${report}\n\n${notYetOf(notYet)}\n\n${summaryOf(verdicts)}`,
  );
  return verdicts.every(isKilled);
}

function isKilled(verdict: Verdict): boolean {
  return verdict.problem === undefined && deathOf(verdict) !== undefined;
}

async function start(args: readonly string[]): Promise<number> {
  let options;
  try {
    options = parseOptions(args, catalogue);
  } catch (error) {
    say(`verify:mutants: ${(error as Error).message}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (options.list) {
    print(`${listOf(options.mutants)}\n\n${notYetOf(notYet)}`);
    return 0;
  }
  try {
    return (await main(options)) ? 0 : 1;
  } catch (error) {
    say(`verify:mutants: ${(error as Error).message}`);
    return 1;
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function say(line: string): void {
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
