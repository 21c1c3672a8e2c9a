import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";

import { engines, kinds, scenarios } from "./plan/schedule.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  /** The first. */
  readonly seed: number;
  readonly runs: number;
  readonly workers: number;
  readonly json: boolean;
  /** The engine, kind or weather that is played; null: all. */
  readonly only: string | null;
  readonly trace: boolean;
  /** A file with one schedule, or a folder of them, to be played instead; null: none. */
  readonly schedule: string | null;
  readonly stopAtFirst: boolean;
  /** How long one failing schedule may be shrunk, ms. */
  readonly shrinkMs: number;
}

const longRuns = 100_000;

export const usage: string = `Usage: npm run verify:sim -- [options]

Plays schedules of callers and faults against the library's own code, in simulated time.
Exit code 1: one of them went wrong.

  --seed N         the seed of the first schedule (default: 1)
  --runs M         how many are played, one seed after the other (default: 1000)
  --long           ${longRuns} of them
  --workers W      over how many processes they are split (default: one for each core)
  --only NAME      only those of an engine (${engines.join(", ")}),
                   a kind (${kinds.join(", ")})
                   or a scenario (${scenarios.join(", ")});
                   several separated by commas: only those of all of them
  --stop-at-first  ends at the first that goes wrong, and prints it in one line, not shrunk
  --shrink-seconds S
                   how long a failing schedule is made smaller (default: 60; 0: not at all)
  --schedule PATH  plays the schedule in this JSON file instead, as a shrunk one is printed;
                   of a folder, each one
  --trace          prints what happens: with one seed (--runs 1) or a schedule
  --json           the summary as JSON
  --help           this text
`;

/** Throws a `TypeError` that names the option. */
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
    seed: parseInteger("seed", values.seed, [0, 2 ** 27]),
    runs: parseInteger("runs", runs, [1, 100_000_000]),
    workers: parseInteger("workers", values.workers ?? String(availableParallelism()), [1, 256]),
    only: parseFilter(values.only),
    schedule: values.schedule ?? null,
    stopAtFirst: values["stop-at-first"],
    shrinkMs: parseInteger("shrink-seconds", values["shrink-seconds"], [0, 3_600]) * 1_000,
  };
  if (trace && options.schedule === null && options.runs !== 1) {
    throw invalidOption("runs", "1 where --trace is given", runs);
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

function parseInteger(option: string, text: string, [low, high]: readonly [number, number]): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < low || value > high) {
    throw invalidOption(option, `an integer from ${low} to ${high}`, text);
  }
  return value;
}

function invalidOption(option: string, expected: string, given: string): TypeError {
  return new TypeError(`Expected --${option} to be ${expected}, got ${JSON.stringify(given)}`);
}
