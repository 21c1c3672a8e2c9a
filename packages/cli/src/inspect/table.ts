import { stripVTControlCharacters } from "node:util";

/** Columns that line up; the last one is as wide as it is. What others wrote cannot move the cursor. */
export function table(rows: readonly (readonly string[])[]): string {
  const plain = rows.map((row) => row.map(sanitizeForTerminal));
  const widths = (plain[0] ?? []).map((_, column) =>
    Math.max(...plain.map((row) => row[column]?.length ?? 0)),
  );
  return plain
    .map((row) =>
      row.map((text, column) => text.padEnd(column === row.length - 1 ? 0 : (widths[column] ?? 0))),
    )
    .map((cells) => cells.join("  ").trimEnd())
    .join("\n");
}

/** Keys, owners and reasons come from others: no control characters of theirs reach a terminal. */
export function sanitizeForTerminal(text: string): string {
  // oxlint-disable-next-line no-control-regex -- it is about them
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
}
