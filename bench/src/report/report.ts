import { blocksOf, type Block } from "./blocks.ts";
import type { Environment } from "../run/environment.ts";
import { nameOf, type RunRecord } from "./record.ts";
import { packageOf, type ContestantName } from "../run/contestant-list.ts";
import type { Metric, Sample, SuiteDescription } from "../suites/suite.ts";
import { hasPeers, type Cell } from "./summary.ts";
import { table } from "./table.ts";

/** The whole run in Markdown, for the file and for the terminal. */
export function toMarkdown(record: RunRecord): string {
  const parts = [
    `# Benchmark of ${record.date.toISOString().slice(0, 10)}`,
    conditions(record),
    ...record.suites.map((suite) => section(suite, record)),
    "## Settings",
    settings(record.samples, record.environment),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** The file name of a suite's chart, next to the record. */
export function chartName(record: RunRecord, { name }: SuiteDescription): string {
  return `${nameOf(record)}-${name}.svg`;
}

function conditions({ environment }: RunRecord): string {
  const { node, servers, cpu, cpus, memoryGiB, system, placement, loadAverage } = environment;
  const lines = [
    `- Node ${node}, ${servers.join(", ")} on the same machine: ${placement}`,
    `- ${system}, ${cpus} × ${cpu}, ${memoryGiB} GiB, load average ${loadAverage} before the run`,
    "- bench/README.md explains the columns",
  ];
  return lines.join("\n");
}

function section(suite: SuiteDescription, record: RunRecord): string {
  const tables = blocksOf(suite, record.samples).map((block) => {
    const text = tableOf(suite, block);
    return block.title === "" ? text : `### ${block.title}\n\n${text}`;
  });
  const { title, method, rounds } = suite;
  const medians = rounds === 1 ? "One round." : `Medians of ${rounds} rounds.`;
  const picture = `![${title}](${chartName(record, suite)})`;
  const remarks = remarksOf(suite, record);
  return [`## ${title}`, `${method} ${medians}`, picture, ...tables, ...remarks].join("\n\n");
}

function tableOf(suite: SuiteDescription, { of, rows }: Block): string {
  const head = [of, ...suite.metrics.flatMap((metric) => columns(metric, suite))];
  return table(
    head,
    rows.map(({ name, cells }) => [name, ...cells.flatMap((cell) => textsOf(cell, suite))]),
  );
}

function columns(metric: Metric, suite: SuiteDescription): string[] {
  const { label, best, against } = metric;
  const other = suite.metrics.find(({ id }) => id === against);
  return [
    label,
    ...(hasSpread(metric, suite) ? ["± %"] : []),
    ...(best && suite.reference !== null ? [`× ${suite.reference}`] : []),
    ...(best && hasPeers(suite) ? ["× best peer"] : []),
    ...(other && hasPeers(suite) ? [`× best peer's ${other.label}`] : []),
  ];
}

function textsOf({ metric, value, range, ratios }: Cell, suite: SuiteDescription): string[] {
  const [smallest, largest] = range;
  const spread = ((largest - smallest) / 2 / value) * 100;
  return [
    formatted(value, metric.digits),
    ...(hasSpread(metric, suite) ? [formatted(spread, 0)] : []),
    ...ratios.map((ratio) => formatted(ratio, 2)),
  ];
}

/** The first metric is the subject of the suite. The spread of the other metrics is in the charts and in the record. */
function hasSpread(metric: Metric, { metrics, rounds }: SuiteDescription): boolean {
  return rounds > 1 && metric === metrics[0];
}

function formatted(value: number, digits: number): string {
  if (value === Infinity) return "∞";
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The reasons for missing contestants, and the failures. */
function remarksOf({ name, absent }: SuiteDescription, { notes }: RunRecord): string[] {
  const lines = [
    ...absent.map(({ contestants, reason }) => `- ${contestants.join(", ")}: ${reason}.`),
    ...notes.filter(({ suite }) => suite === name).map(({ contestant, text }) => `- ${contestant}: ${text}.`),
  ];
  return lines.length === 0 ? [] : [lines.join("\n")];
}

function settings(samples: readonly Sample[], { versions }: Environment): string {
  const lines = samples.map(({ contestant, settings: text }) => `- ${named(contestant, versions)}: ${text}`);
  return [...new Set(lines)].join("\n");
}

/** The clients that contestants use which are no packages. */
const clients: readonly string[] = ["ioredis", "pg", "mysql2"];

function named(contestant: ContestantName, versions: Environment["versions"]): string {
  const used = packageOf(contestant);
  const version = versions[used];
  if (version === undefined) return contestant;
  return `${contestant} (${clients.includes(used) ? `${used} ${version}` : version})`;
}
