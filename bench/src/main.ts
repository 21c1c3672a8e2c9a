import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeEnvironment } from "./run/environment.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { ServerPool } from "./run/server-pool.ts";
import { drawSuite } from "./report/charts/draw.ts";
import { choosePlacement } from "./run/placement.ts";
import { plan } from "./run/plan.ts";
import { errorText } from "./report/error-text.ts";
import { fromJson, nameOf, toJson, type RunRecord } from "./report/record.ts";
import { chartName, toMarkdown } from "./report/report.ts";
import { run } from "./run/run.ts";
import { questions } from "./report/suite-names.ts";

const recordedIn = fileURLToPath(new URL("../results", import.meta.url));

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args, recordedIn);
  if (options.help) process.stdout.write(usage);
  else if (options.list) process.stdout.write(list());
  else if (options.draw !== null) await redraw(options.draw);
  else await measure(options);
}

async function measure(options: ResolvedOptions): Promise<void> {
  const record = await recordOf(options);
  process.stdout.write(`\n${toMarkdown(record)}`);
  if (options.out === null) logLine("Not recorded. To record the results, add --out or omit --quick.");
  else await write(record, options.out);
}

async function recordOf(options: ResolvedOptions): Promise<RunRecord> {
  const placement = choosePlacement();
  const suites = plan(options);
  await using serverPool = await ServerPool.open(suites, placement, logLine);
  const environment = await describeEnvironment(await serverPool.versions(), placement);
  const date = new Date();
  const outcome = await run(suites, serverPool, logLine);
  return { date, environment, suites, ...outcome };
}

async function redraw(file: string): Promise<void> {
  const record = fromJson(await readFile(file, "utf8"));
  await writeReport(record, dirname(file));
}

async function write(record: RunRecord, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${nameOf(record)}.json`), toJson(record));
  await writeReport(record, folder);
}

/** Writes the tables and charts, which need only the record. */
async function writeReport(record: RunRecord, folder: string): Promise<void> {
  const name = nameOf(record);
  await writeFile(join(folder, `${name}.md`), toMarkdown(record));
  for (const suite of record.suites) {
    await writeFile(join(folder, chartName(record, suite)), drawSuite(suite, record));
  }
  logLine(`Wrote ${name}.md and the charts of ${name}.json.`);
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
