import type { JobResult } from "./job.ts";
import { unitsByArticle } from "./orders.ts";

/** The effect of one run on the stock, and its measurements. */
export interface Summary {
  readonly orders: number;
  readonly accepted: number;
  /** The accepted units beyond the stock, over all articles. */
  readonly oversold: number;
  readonly oversoldArticles: number;
  readonly articles: number;
  /** The difference in units between the stock file and the accepted orders. Each unit is part of a lost update. */
  readonly unaccounted: number;
  readonly ordersPerSecond: number;
  readonly waitsMs: readonly number[];
  readonly handovers: number;
}

/** The table at the end of the output. */
export function table(without: Summary, withLocks: Summary): string {
  const row = (label: string, cell: (summary: Summary) => string): string[] => [
    label,
    cell(without),
    cell(withLocks),
  ];
  return align([
    ["", "without locks", "with locks"],
    row("orders", ({ orders }) => formatCount(orders)),
    row("units accepted", ({ accepted }) => formatCount(accepted)),
    row("units oversold", ({ oversold }) => formatCount(oversold)),
    row("articles oversold", ({ oversoldArticles, articles }) => `${oversoldArticles} of ${articles}`),
    row("units unaccounted for", ({ unaccounted }) => formatCount(unaccounted)),
    row("orders/s", ({ ordersPerSecond }) => formatCount(Math.round(ordersPerSecond))),
    row("wait p50", ({ waitsMs }) => milliseconds(percentile(waitsMs, 50))),
    row("wait p99", ({ waitsMs }) => milliseconds(percentile(waitsMs, 99))),
    row("hand-overs", ({ waitsMs, handovers }) => (waitsMs.length > 0 ? formatCount(handovers) : none)),
  ]);
}

/** Whether no unit was oversold, and the stock file agrees with the workers. */
export function isSound({ oversold, unaccounted }: Summary): boolean {
  return oversold === 0 && unaccounted === 0;
}

/** The last sentence of the output. */
export function verdict(without: Summary, withLocks: Summary): string {
  const damage = ({ oversold, unaccounted }: Summary): string =>
    `${formatCount(oversold)} units were oversold and ${formatCount(unaccounted)} are unaccounted for`;
  if (!isSound(withLocks))
    return `WRONG: with locks ${damage(withLocks)}. This is a bug in Holdfast: please report it.`;
  if (isSound(without))
    return "Nothing was oversold with locks. By luck, nothing was oversold without locks either.";
  return `Without locks ${damage(without)}. With locks none.`;
}

export function summarize(
  { tallies, handovers, seconds }: JobResult,
  initial: ReadonlyMap<string, number>,
  remaining: ReadonlyMap<string, number>,
): Summary {
  const sold = unitsByArticle(tallies.flatMap((tally) => tally.accepted));
  const articles = [...initial].map(([article, stock]) => {
    const accepted = sold.get(article) ?? 0;
    const missing = stock - accepted - (remaining.get(article) ?? 0);
    return { accepted, oversold: Math.max(0, accepted - stock), unaccounted: Math.abs(missing) };
  });
  const orders = total(tallies.map(({ handled }) => handled));
  return {
    orders,
    accepted: total(articles.map(({ accepted }) => accepted)),
    oversold: total(articles.map(({ oversold }) => oversold)),
    oversoldArticles: articles.filter(({ oversold }) => oversold > 0).length,
    articles: articles.length,
    unaccounted: total(articles.map(({ unaccounted }) => unaccounted)),
    ordersPerSecond: orders / seconds,
    waitsMs: tallies.flatMap(({ waitsMs }) => waitsMs),
    handovers,
  };
}

/** The percentile by nearest rank; undefined without values. */
export function percentile(values: readonly number[], percent: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)];
}

/** 12345 as `12 345`. */
export function formatCount(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, " ");
}

const none = "-";

function milliseconds(value: number | undefined): string {
  return value === undefined ? none : `${value.toFixed(1)} ms`;
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** Aligns the first column to the left, and figures to the right. */
function align(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  const lines = rows.map((row) => {
    const cells = row.map((cell, i) =>
      i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0),
    );
    return cells.join("   ");
  });
  lines.splice(1, 0, "-".repeat(lines[0]?.length ?? 0));
  return `${lines.join("\n")}\n`;
}
