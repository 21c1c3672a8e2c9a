import type { Sample, SuiteDescription } from "../suites/suite.ts";
import { contestantsOf, summarize, type Row } from "./summary.ts";

/** One table, and one row of panels in a picture. */
export interface Block {
  /** Empty: there is no other. */
  readonly title: string;
  /** What its rows are. */
  readonly of: "contestant" | "case";
  readonly rows: readonly NamedRow[];
  readonly samples: readonly Sample[];
}

interface NamedRow extends Row {
  readonly name: string;
}

/** One for each case, with a row for each contestant; of a lone contestant one in all, with a row for each case. */
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
