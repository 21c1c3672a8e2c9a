import type { Environment } from "../run/environment.ts";
import type { Note, Sample, SuiteDescription } from "../suites/suite.ts";

/** All that a run gave: what its tables and pictures are made of, now or later. */
export interface RunRecord {
  readonly date: Date;
  readonly environment: Environment;
  readonly suites: readonly SuiteDescription[];
  /** Every one of every round, for those who trust no median. */
  readonly samples: readonly Sample[];
  readonly notes: readonly Note[];
}

/** Its name among the results: a second run of a minute does not replace the first. */
export function nameOf({ date }: RunRecord): string {
  return date.toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
}

/** A figure that is no number is `null`. */
export function toJson({ suites, ...rest }: RunRecord): string {
  return `${JSON.stringify({ ...rest, suites: suites.map(described) }, null, 2)}\n`;
}

/** @throws {TypeError} for a file of another form: those of the first runs told less */
export function fromJson(text: string): RunRecord {
  const { date, environment, suites, samples, notes } = JSON.parse(text) as Partial<RunRecord>;
  const isWhole = suites?.every(({ panels, cases, contestants }) => panels && cases && contestants) === true;
  if (!date || !environment || !isWhole || !samples || !notes) {
    throw new TypeError("Expected the record of a run with all that tables and pictures need");
  }
  return { date: new Date(date), environment, suites, samples, notes };
}

/** Without what cannot be recorded: how it is measured. */
function described(suite: SuiteDescription): SuiteDescription {
  const { name, title, method, contestants, absent, reference, rounds, cases, metrics, panels } = suite;
  return { name, title, method, contestants, absent, reference, rounds, cases, metrics, panels };
}
