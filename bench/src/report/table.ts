export type Row = readonly string[];

/**
 * A Markdown table with aligned columns, so that it is readable as plain text too. The first column is text, the others are
 * numbers.
 */
export function table(head: Row, body: readonly Row[]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...body].map((row) => (row[column] ?? "").length)),
  );
  const line = (row: Row): string =>
    `| ${widths.map((width, column) => padded(row[column] ?? "", width, column)).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [line(head), `| ${rule.join(" | ")} |`, ...body.map(line)].join("\n");
}

function padded(text: string, width: number, column: number): string {
  return column === 0 ? text.padEnd(width) : text.padStart(width);
}
