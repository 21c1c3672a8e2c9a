import type { ContestantName } from "../run/contestant-list.ts";
import type { Contestants, Row, SuiteRecord } from "./record.ts";

/** One table of the report, and one row of panels in a chart. */
export interface Block {
  /** Empty if the suite has no other block. */
  readonly title: string;
  /** Whether a row is a contestant or a case. */
  readonly of: "contestant" | "case";
  readonly rows: readonly NamedRow[];
}

export interface NamedRow extends Row {
  readonly name: string;
  readonly contestant: ContestantName;
}

/**
 * One block for each case, with a row for each contestant. A suite with a single contestant has one block, with a row for each
 * case.
 */
export function blocksOf({ cases }: SuiteRecord): readonly Block[] {
  const blocks = Object.entries(cases).map(([title, contestants]) => ({
    title,
    of: "contestant" as const,
    rows: rowsOf(contestants),
  }));
  if (blocks.some(({ rows }) => rows.length !== 1)) return blocks;
  const rows = blocks.flatMap(({ title, rows }) => rows.map((row) => ({ ...row, name: title })));
  return [{ title: "", of: "case", rows }];
}

function rowsOf(contestants: Contestants): readonly NamedRow[] {
  const entries = Object.entries(contestants) as [ContestantName, Row][];
  return entries.map(([contestant, row]) => ({ ...row, name: contestant, contestant }));
}
