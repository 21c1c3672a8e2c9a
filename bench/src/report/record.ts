import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import type { Environment } from "../run/environment.ts";
import type { ContestantName } from "../run/contestant-list.ts";
import type { Panel, Series } from "../suites/suite.ts";
import { suiteNames, type SuiteName } from "./suite-names.ts";

/** The result of one suite, from which its tables and its chart are made. */
export interface SuiteRecord extends RunDescription<string> {
  readonly suite: SuiteName;
  readonly title: string;
  /** The load and its duration, in a few words. */
  readonly method: string;
  readonly rounds: number;
  /** A line for each contestant with its version. */
  readonly settings: readonly string[];
  /** A line for each reason for missing contestants. */
  readonly absent: readonly string[];
  /** A line for each contestant that was left out, and for each case with failed calls. */
  readonly notes: readonly string[];
  readonly metrics: readonly RecordedMetric[];
  /** The panels of each case in the chart, from left to right. */
  readonly panels: readonly Panel[];
  /** The contestants of each case, by the title of the case. Both are in the order of the report. */
  readonly cases: Readonly<Record<string, Contestants>>;
}

/** The facts that all suites of a run share. */
export interface RunDescription<Versions> {
  /** When the run began, in ISO 8601. */
  readonly date: string;
  /** The commit of the measured source. */
  readonly commit: string;
  readonly environment: Omit<Environment, "versions"> & { readonly versions: Versions };
}

interface RecordedMetric {
  readonly id: string;
  readonly label: string;
  readonly digits: number;
  /** The labels of the metric's ratios to other contestants. */
  readonly ratios: readonly string[];
}

export type Contestants = Readonly<Partial<Record<ContestantName, Row>>>;

/** The figures of one contestant in one case. The lists are empty if the contestant has no figures. */
export interface Row {
  /** The median of each metric over the rounds. */
  readonly median: readonly Figure[];
  /** The smallest figure of the rounds; missing after a single round, like `most`. */
  readonly least?: readonly Figure[];
  readonly most?: readonly Figure[];
  /** The ratios of all metrics, one after another. */
  readonly ratios: readonly Figure[];
  /** The series of the last round. */
  readonly series?: Series;
}

/** `null`: there is none. `∞`: a ratio to zero. JSON has neither of these numbers. */
export type Figure = number | "∞" | null;

/** The newest record of each of the suites in the folder, in their order. A suite without a record is left out. */
export async function readRecords(
  folder: string,
  suites: readonly SuiteName[] = suiteNames,
): Promise<readonly SuiteRecord[]> {
  const files = await readdir(folder);
  const recorded = suites.map(fileName).filter((file) => files.includes(file));
  return Promise.all(recorded.map(async (file) => fromJson(await readFile(join(folder, file), "utf8"))));
}

/** The name does not depend on the run, so that a record replaces the older record of its suite. */
export function fileName(suite: SuiteName): string {
  return `${suite}.json`;
}

/** The text of the record's file. `npm run format` does not change the text, because the run formats it alike. */
export async function toJson(record: SuiteRecord): Promise<string> {
  const settings = await resolveConfig(fileURLToPath(import.meta.url));
  return format(JSON.stringify(record), { ...settings, parser: "json" });
}

/** @throws {TypeError} if the text lacks a field */
export function fromJson(text: string): SuiteRecord {
  const record = JSON.parse(text) as Partial<SuiteRecord>;
  const missing = fields.filter((field) => record[field] === undefined);
  if (missing.length === 0) return record as SuiteRecord;
  throw new TypeError(`Expected the record of a suite, got a file without ${missing.join(", ")}`);
}

const fields = [
  "suite",
  "title",
  "date",
  "commit",
  "environment",
  "method",
  "rounds",
  "settings",
  "absent",
  "notes",
  "metrics",
  "panels",
  "cases",
] as const satisfies readonly (keyof SuiteRecord)[];
