import type { Environment } from "./environment.ts";
import type { Outcome } from "./run.ts";
import type { Entrant } from "./roster.ts";
import type { Metric, Note, Sample, Suite } from "./suite.ts";
import { summarize, type Cell, type Row } from "./summary.ts";
import { table } from "./table.ts";

export interface Report {
  readonly date: Date;
  readonly rounds: number;
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
  const asked = suites.map(({ name, method, metrics }) => ({ suite: name, method, metrics }));
  const content = { date: date.toISOString(), ...rest, suites: asked, ...outcome };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function conditions({ environment, rounds }: Report): string {
  const { node, redis, cpu, cpus, memoryGiB, system, placement, loadAverage } = environment;
  const lines = [
    `- Node ${node}, Redis ${redis} on the same machine: ${placement}`,
    `- ${system}, ${cpus} × ${cpu}, ${memoryGiB} GiB, load average ${loadAverage} before the run`,
    `- ${rounds === 1 ? "One round" : `Medians of ${rounds} rounds`}`,
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
  return [`## ${suite.title}`, suite.method, ...tables, ...remarks].join("\n\n");
}

function caseTable({ metrics, entrants }: Suite, rows: readonly Row[]): string {
  const hasRaw = entrants.includes("raw");
  const head = ["contestant", ...metrics.flatMap((metric) => columns(metric, hasRaw))];
  return table(
    head,
    rows.map(({ entrant, cells }) => [entrant, ...cells.flatMap((cell) => texts(cell, hasRaw))]),
  );
}

function columns({ label, best }: Metric, hasRaw: boolean): string[] {
  if (!best) return [label];
  return hasRaw ? [label, "× raw", "× best peer"] : [label, "× best peer"];
}

function texts({ metric, value, ratios }: Cell, hasRaw: boolean): string[] {
  const text = number(value, metric.digits);
  if (!ratios) return [text];
  const toBestPeer = number(ratios.toBestPeer, 2);
  return hasRaw ? [text, number(ratios.toRaw, 2), toBestPeer] : [text, toBestPeer];
}

function number(value: number, digits: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function remarksOf(notes: readonly Note[]): string[] {
  if (notes.length === 0) return [];
  return [notes.map(({ entrant, text }) => `- ${entrant}: ${text}.`).join("\n")];
}

function settings(samples: readonly Sample[], { versions }: Environment): string {
  const byEntrant = new Map(samples.map((sample) => [sample.entrant, sample.settings]));
  return [...byEntrant].map(([entrant, text]) => `- ${named(entrant, versions)}: ${text}`).join("\n");
}

function named(entrant: Entrant, versions: Environment["versions"]): string {
  const [name, version] =
    entrant === "raw"
      ? ["raw", `ioredis ${versions["ioredis"]}`]
      : [entrant, versions[entrant] ?? versions["holdfast"]];
  return `${name} (${version})`;
}
