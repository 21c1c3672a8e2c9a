import type { Environment } from "../run/environment.ts";
import type { Note, Sample, SuiteDescription } from "../suites/suite.ts";

/** The complete result of a run, from which its tables and charts are made. */
export interface RunRecord {
  readonly date: Date;
  readonly environment: Environment;
  readonly suites: readonly SuiteDescription[];
  /** All samples of all rounds, so that readers can check the medians. */
  readonly samples: readonly Sample[];
  readonly notes: readonly Note[];
}

/** The file name of the record. It includes the seconds, so that a second run within a minute does not replace the first. */
export function nameOf({ date }: RunRecord): string {
  return date.toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
}

/** Figures that are not finite become `null`. */
export function toJson({ suites, ...rest }: RunRecord): string {
  return `${JSON.stringify({ ...rest, suites: suites.map(described) }, null, 2)}\n`;
}

/** @throws {TypeError} if the file lacks a field, as the files of the first runs do */
export function fromJson(text: string): RunRecord {
  const { date, environment, suites, samples, notes } = JSON.parse(text) as Partial<RunRecord>;
  const isWhole = suites?.every(({ panels, cases, contestants }) => panels && cases && contestants) === true;
  if (!date || !environment || !isWhole || !samples || !notes) {
    throw new TypeError("Expected the record of a run with all fields that tables and charts need");
  }
  return { date: new Date(date), environment: withServers(environment), suites, samples, notes };
}

/** Records of runs before 25 November 2026, 20:00 UTC, have only the version of Redis. */
function withServers(environment: Environment & { readonly redis?: string }): Environment {
  return { ...environment, servers: environment.servers ?? [`Redis ${environment.redis}`] };
}

/** The description alone, without the function that measures. */
function described(suite: SuiteDescription): SuiteDescription {
  const { name, title, method, contestants, absent, reference, rounds, cases, metrics, panels } = suite;
  return { name, title, method, contestants, absent, reference, rounds, cases, metrics, panels };
}
