import type { Environment } from "./environment.ts";
import type { Outcome } from "./run.ts";
import { packageOf, type Entrant } from "./roster.ts";
import type { Metric, Note, Sample, Suite } from "./suite.ts";
import { summarize, type Cell, type Row } from "./summary.ts";
import { table } from "./table.ts";

export interface Report {
  readonly date: Date;
  readonly environment: Environment;
  readonly suites: readonly Suite[];
  readonly outcome: Outcome;
}

/** The whole run in Markdown, which is also what the terminal shows. */
export function toMarkdown(report: Report): string {
  const { suites, outcome } = report;
  const parts = [
    `# Benchmark of ${report.date.toISOString().slice(0, 10)}`,
    conditions(report),
    ...suites.map((suite) => section(suite, outcome)),
    "## Settings",
    settings(outcome.samples, report.environment),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** Every sample of every round, for those who trust no median. */
export function toJson({ suites, outcome, date, ...rest }: Report): string {
  const asked = suites.map(({ name, method, rounds, metrics }) => ({ suite: name, method, rounds, metrics }));
  const content = { date: date.toISOString(), ...rest, suites: asked, ...outcome };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function conditions({ environment }: Report): string {
  const { node, redis, cpu, cpus, memoryGiB, system, placement, loadAverage } = environment;
  const lines = [
    `- Node ${node}, Redis ${redis} on the same machine: ${placement}`,
    `- ${system}, ${cpus} × ${cpu}, ${memoryGiB} GiB, load average ${loadAverage} before the run`,
    "- What the columns mean: bench/README.md",
  ];
  return lines.join("\n");
}

function section(suite: Suite, { samples, notes }: Outcome): string {
  const tables = suite.cases.map((label) => {
    const rows = summarize(suite, label, samples);
    return `### ${label}\n\n${rows.length > 0 ? caseTable(suite, rows) : "Nobody took part."}`;
  });
  const remarks = remarksOf(notes.filter((note) => note.suite === suite.name));
  const { title, method, rounds } = suite;
  const medians = rounds === 1 ? "One round." : `Medians of ${rounds} rounds.`;
  return [`## ${title}`, `${method} ${medians}`, ...tables, ...remarks].join("\n\n");
}

function caseTable(suite: Suite, rows: readonly Row[]): string {
  const head = ["contestant", ...suite.metrics.flatMap((metric) => columns(metric, suite))];
  return table(
    head,
    rows.map(({ entrant, cells }) => [entrant, ...cells.flatMap(texts)]),
  );
}

function columns({ label, best, against }: Metric, { reference, metrics }: Suite): string[] {
  const other = metrics.find(({ id }) => id === against);
  return [
    label,
    ...(best && reference !== null ? [`× ${reference}`] : []),
    ...(best ? ["× best peer"] : []),
    ...(other ? [`× best peer's ${other.label}`] : []),
  ];
}

function texts({ metric, value, ratios }: Cell): string[] {
  return [number(value, metric.digits), ...ratios.map((ratio) => number(ratio, 2))];
}

function number(value: number, digits: number): string {
  if (value === Infinity) return "∞";
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function remarksOf(notes: readonly Note[]): string[] {
  if (notes.length === 0) return [];
  return [notes.map(({ entrant, text }) => `- ${entrant}: ${text}.`).join("\n")];
}

function settings(samples: readonly Sample[], { versions }: Environment): string {
  const lines = samples.map(({ entrant, settings: text }) => `- ${named(entrant, versions)}: ${text}`);
  return [...new Set(lines)].join("\n");
}

function named(entrant: Entrant, versions: Environment["versions"]): string {
  const version = versions[packageOf(entrant)];
  return `${entrant} (${entrant === "raw" ? `ioredis ${version}` : version})`;
}
