import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeEnvironment } from "./environment.ts";
import { parseOptions, usage, type ResolvedOptions } from "./options.ts";
import { Grounds } from "./grounds.ts";
import { choosePlacement } from "./placement.ts";
import { plan } from "./plan.ts";
import { reasonOf } from "./reason.ts";
import { toJson, toMarkdown, type Report } from "./report.ts";
import { run } from "./run.ts";

const recordedIn = fileURLToPath(new URL("../results", import.meta.url));

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args, recordedIn);
  if (options.help) {
    process.stdout.write(usage);
    return;
  }
  const report = await measure(options);
  process.stdout.write(`\n${toMarkdown(report)}`);
  if (options.out === null) say("Not recorded. Give --out, or leave --quick out.");
  else await record(report, options.out);
}

async function measure(options: ResolvedOptions): Promise<Report> {
  const placement = choosePlacement();
  const suites = plan(options);
  await using grounds = await Grounds.open(suites, placement, say);
  const environment = await describeEnvironment(grounds.admin, placement);
  const date = new Date();
  const outcome = await run(suites, (suite) => grounds.siteOf(suite), say);
  return { date, environment, suites, outcome };
}

/** Named by date and minute, so that a second run of a day does not replace the first. */
async function record(report: Report, folder: string): Promise<void> {
  const name = report.date.toISOString().slice(0, 16).replace("T", "-").replace(":", "");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.md`), toMarkdown(report));
  await writeFile(join(folder, `${name}.json`), toJson(report));
  say(`Recorded as ${name}.md and ${name}.json.`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

// The server and the workers end with us: on `exit`, and because their channel closes.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

main(process.argv.slice(2)).catch((error: unknown) => {
  say(`bench: ${reasonOf(error)}`);
  process.exitCode = 1;
});
