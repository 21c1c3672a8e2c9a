import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";

import { integerOption, invalidOption } from "../options.ts";
import { engines, kinds, scenarios } from "./plan/schedule.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  /** The first seed. */
  readonly seed: number;
  readonly runs: number;
  readonly workers: number;
  readonly json: boolean;
  /** Only schedules of this engine, kind or scenario are run; null: all. */
  readonly only: string | null;
  readonly trace: boolean;
  /** A file with one schedule, or a folder of schedules, that is run in place of seeds; null: none. */
  readonly schedule: string | null;
  readonly stopAtFirst: boolean;
  /** How long one failing schedule may be shrunk, ms. */
  readonly shrinkMs: number;
}

const longRuns = 100_000;

export const usage: string = `Usage: npm run verify:sim -- [options]

Runs schedules of callers and faults against the library's own code, in simulated time.
Exit code 1: a schedule failed.

  --seed N         the seed of the first schedule (default: 1)
  --runs M         how many schedules are run, one seed after the other (default: 1000)
  --long           runs ${longRuns} schedules
  --workers W      the number of processes (default: one for each core)
  --only NAME      runs only schedules of an engine (${engines.join(", ")}),
                   a kind (${kinds.join(", ")})
                   or a scenario (${scenarios.join(", ")});
                   with several names, separated by commas, all names must match
  --stop-at-first  stops at the first failure, and prints one line without shrinking
  --shrink-seconds S
                   how long one failing schedule is shrunk (default: 60; 0: not at all)
  --schedule PATH  runs the schedule in this JSON file, or each schedule of a folder
  --trace          prints every event of one seed (--runs 1) or one schedule
  --json           prints the summary as JSON
  --help           prints this text
`;

/** @throws {TypeError} names the invalid option, the expected value and the actual value */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: "string", default: "1" },
      runs: { type: "string" },
      long: { type: "boolean", default: false },
      workers: { type: "string" },
      only: { type: "string" },
      "stop-at-first": { type: "boolean", default: false },
      "shrink-seconds": { type: "string", default: "60" },
      schedule: { type: "string" },
      trace: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { help, json, trace, long } = values;
  const runs = values.runs ?? (long ? String(longRuns) : trace ? "1" : "1000");
  const options = {
    help,
    json,
    trace,
    seed: integerOption("seed", values.seed, [0, 2 ** 27]),
    runs: integerOption("runs", runs, [1, 100_000_000]),
    workers: integerOption("workers", values.workers ?? String(availableParallelism()), [1, 256]),
    only: parseFilter(values.only),
    schedule: values.schedule ?? null,
    stopAtFirst: values["stop-at-first"],
    shrinkMs: integerOption("shrink-seconds", values["shrink-seconds"], [0, 3_600]) * 1_000,
  };
  if (trace && options.schedule === null && options.runs !== 1) {
    throw invalidOption("runs", "1 with --trace", runs);
  }
  return options;
}

function parseFilter(text: string | undefined): string | null {
  const names: readonly string[] = [...engines, ...kinds, ...scenarios];
  if (text !== undefined && !text.split(",").every((name) => names.includes(name))) {
    throw invalidOption("only", `one of ${names.join(", ")}`, text);
  }
  return text ?? null;
}
