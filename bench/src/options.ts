import { parseArgs } from "node:util";
import { contestants, peers, type ContestantName, type Peer } from "./run/contestant-list.ts";
import { suiteNames, type SuiteName } from "./report/suite-names.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly list: boolean;
  readonly quick: boolean;
  readonly suites: readonly SuiteName[];
  /** `null`: each suite's own default. */
  readonly rounds: number | null;
  /** How long a rate is measured; `null`: each suite's own default. */
  readonly measureMs: number | null;
  /** The duration of the suite `churn`; `null`: its default. */
  readonly minutes: number | null;
  readonly peers: readonly Peer[];
  /** The contestants that run; `null`: all of a suite. */
  readonly only: readonly ContestantName[] | null;
  /** The folder for the records; `null`: the results are not recorded. */
  readonly out: string | null;
  /** The folder for the charts of records, which are drawn instead of a measurement; `null`: measure. */
  readonly draw: string | null;
}

export const usage: string = `Usage: npm run bench -- [options]

  --suite A,B      which suites (default: all, which takes hours); --list prints them
  --list           the suites and their questions
  --rounds N       how often every contestant has its turn (default: 3, on a quorum 5; quick: 1)
  --seconds S      how long a rate is measured (default: 1 to 10, by the suite; quick: 0.2)
  --minutes M      the duration of the suite churn (default: 2)
  --peers A,B      which peers to measure besides raw ioredis and holdfast; none for none
                   (default: ${peers.slice(0, 3).join(", ")},
                   ${peers.slice(3).join(", ")})
  --only A,B       which contestants of the suites run: holdfast, holdfast-strict …
  --out FOLDER     where the records are (default: bench/results; nowhere with --quick, --only or --peers,
                   because a record of some contestants must not replace the record of all)
  --quick          a smoke test of each suite, in seconds; its figures are not meaningful
  --draw FOLDER    prints the tables of the recorded suites, and writes their charts to FOLDER
  --help           this text
`;

/** @throws {TypeError} that names the option */
export function parseOptions(args: readonly string[], recordedIn: string): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      suite: { type: "string", default: "all" },
      list: { type: "boolean", default: false },
      rounds: { type: "string" },
      seconds: { type: "string" },
      minutes: { type: "string" },
      peers: { type: "string", default: peers.join(",") },
      only: { type: "string" },
      out: { type: "string" },
      quick: { type: "boolean", default: false },
      draw: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const { quick, list, help } = values;
  const seconds = numberFrom("seconds", values.seconds, [0.1, 600]);
  return {
    help,
    list,
    quick,
    suites: suitesFrom(values.suite),
    rounds: roundsFrom(values.rounds),
    measureMs: seconds === null ? null : seconds * 1_000,
    minutes: numberFrom("minutes", values.minutes, [0.05, 1_440]),
    peers: peersFrom(values.peers),
    only: onlyFrom(values.only),
    out:
      values.out ??
      (quick || values.only !== undefined || values.peers !== peers.join(",") ? null : recordedIn),
    draw: values.draw ?? null,
  };
}

function suitesFrom(text: string): readonly SuiteName[] {
  if (text === "all") return suiteNames;
  const names = namesFrom("suite", text, { known: suiteNames, or: ", or all" });
  return suiteNames.filter((name) => names.includes(name));
}

function peersFrom(text: string): readonly Peer[] {
  if (text === "none") return [];
  const names = namesFrom("peers", text, { known: peers, or: ", or none" });
  return peers.filter((peer) => names.includes(peer));
}

function onlyFrom(text: string | undefined): readonly ContestantName[] | null {
  return text === undefined
    ? null
    : (namesFrom("only", text, { known: contestants, or: "" }) as ContestantName[]);
}

function namesFrom(
  option: string,
  text: string,
  { known, or }: { known: readonly string[]; or: string },
): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  const unknownName = names.find((name) => !known.includes(name));
  if (unknownName === undefined) return names;
  throw invalidOption(option, `some of ${known.join(", ")}, separated by commas${or}`, unknownName);
}

function roundsFrom(text: string | undefined): number | null {
  if (text === undefined) return null;
  const rounds = Number(text);
  const known = Number.isInteger(rounds) && rounds >= 1 && rounds <= 100;
  if (!known) throw invalidOption("rounds", "an integer from 1 to 100", text);
  return rounds;
}

function numberFrom(
  option: string,
  text: string | undefined,
  [least, most]: readonly [least: number, most: number],
): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  const known = text.trim() !== "" && value >= least && value <= most;
  if (!known) throw invalidOption(option, `a number from ${least} to ${most}`, text);
  return value;
}

function invalidOption(option: string, expected: string, given: string): TypeError {
  return new TypeError(`Expected --${option} to be ${expected}, got ${JSON.stringify(given)}`);
}
