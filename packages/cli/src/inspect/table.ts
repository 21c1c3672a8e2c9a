import { stripVTControlCharacters } from "node:util";

/** Formats aligned columns. The last column is not padded. Control characters in the texts are replaced. */
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

/** Replaces control characters, because keys, owners and reasons come from other programs. */
export function sanitizeForTerminal(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the function removes control characters
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
}
