import type { Sample, SuiteDescription } from "../suites/suite.ts";
import { contestantsOf, summarize, type Row } from "./summary.ts";

/** One table of the report, and one row of panels in a chart. */
export interface Block {
  /** Empty if the suite has no other block. */
  readonly title: string;
  /** Whether a row is a contestant or a case. */
  readonly of: "contestant" | "case";
  readonly rows: readonly NamedRow[];
  readonly samples: readonly Sample[];
}

interface NamedRow extends Row {
  readonly name: string;
}

/**
 * One block for each case, with a row for each contestant. A suite with a single contestant has one block, with a row for each
 * case.
 */
export function blocksOf(suite: SuiteDescription, samples: readonly Sample[]): readonly Block[] {
  const ours = samples.filter((sample) => sample.suite === suite.name);
  const cases = suite.cases.map((title) => ({ title, rows: summarize(suite, title, ours) }));
  if (contestantsOf(suite).length === 1) {
    const rows = cases.flatMap(({ title, rows }) => rows.map((row) => ({ ...row, name: title })));
    return [{ title: "", of: "case", rows, samples: ours }];
  }
  return cases.map(({ title, rows }) => ({
    title,
    of: "contestant",
    rows: rows.map((row) => ({ ...row, name: row.contestant })),
    samples: ours.filter((sample) => sample.case === title),
  }));
}
