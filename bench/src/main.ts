import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeCommit, describeEnvironment } from "./run/environment.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { ServerPool } from "./run/server-pool.ts";
import { drawSuite } from "./report/charts/draw.ts";
import { choosePlacement } from "./run/placement.ts";
import { plan } from "./run/plan.ts";
import { errorText } from "./report/error-text.ts";
import { fileName, readRecords, toJson, type SuiteRecord } from "./report/record.ts";
import { toMarkdown } from "./report/report.ts";
import { summarize } from "./report/summary.ts";
import { run } from "./run/run.ts";
import { questions } from "./report/suite-names.ts";

const recordedIn = fileURLToPath(new URL("../results", import.meta.url));

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args, recordedIn);
  if (options.help) process.stdout.write(usage);
  else if (options.list) process.stdout.write(list());
  else if (options.draw !== null) await draw(options, options.draw);
  else await measure(options);
}

async function measure(options: ResolvedOptions): Promise<void> {
  const records = await recordsOf(options);
  process.stdout.write(`\n${toMarkdown(records)}`);
  if (options.out === null) logLine("Not recorded. To record the results, add --out or omit --quick.");
  else await write(options.out, await Promise.all(records.map(fileOf)));
}

type NamedText = readonly [name: string, text: string];

async function fileOf(record: SuiteRecord): Promise<NamedText> {
  return [fileName(record.suite), await toJson(record)];
}

async function recordsOf(options: ResolvedOptions): Promise<readonly SuiteRecord[]> {
  const placement = choosePlacement();
  const suites = plan(options);
  await using serverPool = await ServerPool.open(suites, placement, logLine);
  const environment = await describeEnvironment(await serverPool.versions(), placement);
  const [date, commit] = [new Date().toISOString(), await describeCommit()];
  const outcome = await run(suites, serverPool, logLine);
  return suites.map((suite) => summarize(suite, outcome, { date, commit, environment }));
}

/** The records may be of different runs, so each has a report of its own. */
async function draw({ out, suites }: ResolvedOptions, folder: string): Promise<void> {
  const records = await readRecords(out ?? recordedIn, suites);
  for (const record of records) process.stdout.write(`${toMarkdown([record])}\n`);
  const files = records.map((record) => [`${record.suite}.svg`, drawSuite(record)] as const);
  await write(folder, files);
}

async function write(folder: string, files: readonly NamedText[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of files) await writeFile(join(folder, name), text);
  logLine(`Wrote ${files.map(([name]) => name).join(", ")} to ${folder}.`);
}

function list(): string {
  const width = Math.max(...Object.keys(questions).map((name) => name.length));
  return Object.entries(questions)
    .map(([name, question]) => `${name.padEnd(width)}  ${question}\n`)
    .join("");
}

function logLine(line: string): void {
  process.stderr.write(`${line}\n`);
}

// Servers and workers end with this process: the servers in a handler of `exit`, and the workers because their channel closes.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

main(process.argv.slice(2)).catch((error: unknown) => {
  logLine(`bench: ${errorText(error)}`);
  if (error instanceof TypeError) logLine("npm run bench -- --help lists the options.");
  process.exitCode = 1;
});
