import { blocksOf, type Block } from "./blocks.ts";
import type { Figure, Row, SuiteRecord } from "./record.ts";
import { table } from "./table.ts";

/** The tables of a run in Markdown. All records are of the same run. */
export function toMarkdown(records: readonly SuiteRecord[]): string {
  const parts = [
    ...records.slice(0, 1).map(head),
    ...records.map(section),
    "## Settings",
    listed([...new Set(records.flatMap(({ settings }) => settings))]),
  ];
  return `${parts.join("\n\n")}\n`;
}

function head({ date, commit, environment }: SuiteRecord): string {
  const { node, servers, cpu, cpus, memoryGiB, system, placement, loadAverage } = environment;
  const conditions = listed([
    `Node ${node}, ${servers.join(", ")} on the same machine: ${placement}`,
    `${system}, ${cpus} × ${cpu}, ${memoryGiB} GiB, load average ${loadAverage} before the run`,
    `commit: ${commit}`,
    "bench/README.md explains the columns",
  ]);
  return `# Benchmark of ${date.slice(0, 10)}\n\n${conditions}`;
}

function section(record: SuiteRecord): string {
  const tables = blocksOf(record).map((block) => {
    const text = tableOf(record, block);
    return block.title === "" ? text : `### ${block.title}\n\n${text}`;
  });
  const { title, method, rounds, absent, notes } = record;
  const remarks = [...absent, ...notes];
  const medians = rounds === 1 ? "One round." : `Medians of ${rounds} rounds.`;
  const after = remarks.length === 0 ? [] : [listed(remarks)];
  return [`## ${title}`, `${method} ${medians}`, ...tables, ...after].join("\n\n");
}

function listed(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join("\n");
}

function tableOf(record: SuiteRecord, { of, rows }: Block): string {
  const columns = columnsOf(record);
  const head = [of, ...columns.map(({ label }) => label)];
  return table(
    head,
    rows.map((row) => [row.name, ...columns.map(({ digits, figureOf }) => formatted(figureOf(row), digits))]),
  );
}

interface Column {
  readonly label: string;
  readonly digits: number;
  figureOf(row: Row): Figure | undefined;
}

/** The first metric is the subject, and has a spread. The spread of the others is in the charts and in the record. */
function columnsOf({ metrics, rounds }: SuiteRecord): readonly Column[] {
  let ratio = 0;
  return metrics.flatMap(({ label, digits, ratios }, index) => [
    { label, digits, figureOf: ({ median }) => median[index] },
    ...(rounds > 1 && index === 0 ? [{ label: "± %", digits: 0, figureOf: spreadOf }] : []),
    ...ratios.map((text): Column => {
      const position = ratio++;
      return { label: text, digits: 2, figureOf: (row) => row.ratios[position] };
    }),
  ]);
}

/** Half of the range of the rounds, as a part of the median, in percent. */
function spreadOf({ median, least, most }: Row): number {
  return ((Number(most?.[0]) - Number(least?.[0])) / 2 / Number(median[0])) * 100;
}

function formatted(value: Figure | undefined, digits: number): string {
  if (value === "∞") return value;
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
