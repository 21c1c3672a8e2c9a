export type Row = readonly string[];

/** A Markdown table with aligned columns, so that it is readable as plain text too. */
export function table(head: Row, body: readonly Row[]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...body].map((row) => (row[column] ?? "").length)),
  );
  const line = (row: Row): string =>
    `| ${widths.map((width, column) => (row[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  return [line(head), line(rule), ...body.map(line)].join("\n");
}
