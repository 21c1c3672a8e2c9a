import { parseArgs } from "node:util";
import { isPeer, peers, type Peer } from "./roster.ts";
import { suiteNames, type SuiteName } from "./suite.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly quick: boolean;
  readonly suites: readonly SuiteName[];
  /** `null`: each suite's own default. */
  readonly rounds: number | null;
  /** How long a rate is measured; `null`: each suite's own default. */
  readonly measureMs: number | null;
  readonly peers: readonly Peer[];
  /** Where to record the results; `null`: nowhere. */
  readonly out: string | null;
}

export const usage: string = `Usage: npm run bench -- [options]

  --suite A,B      which of ${suiteNames.slice(0, 4).join(", ")},
                   ${suiteNames.slice(4).join(", ")};
                   or all (default: all)
  --rounds N       how often every contestant has its turn (default: 3, on a quorum 5; quick: 1)
  --seconds S      how long a rate is measured (default: 1, on the hot key 2,
                   on a quorum's hot key 10; quick: 0.25, there 1)
  --peers A,B      which peers to measure besides raw ioredis and holdfast; none for none
                   (default: ${peers.slice(0, 3).join(", ")},
                   ${peers.slice(3).join(", ")})
  --out FOLDER     where to record the results (default: bench/results; quick: nowhere)
  --quick          a smoke test of about two minutes: its figures say little
  --help           this text
`;

/** Throws a `TypeError` that names the option. */
export function parseOptions(args: readonly string[], recordedIn: string): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      suite: { type: "string", default: "all" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      peers: { type: "string", default: peers.join(",") },
      out: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { quick, help } = values;
  return {
    help,
    quick,
    suites: suitesFrom(values.suite),
    rounds: roundsFrom(values.rounds),
    measureMs: measureMsFrom(values.seconds),
    peers: peersFrom(values.peers),
    out: values.out ?? (quick ? null : recordedIn),
  };
}

function suitesFrom(text: string): readonly SuiteName[] {
  if (text === "all") return suiteNames;
  const names = text.split(",").map((part) => part.trim());
  const stranger = names.find((name) => !(suiteNames as readonly string[]).includes(name));
  if (stranger !== undefined) {
    throw refusal("suite", `some of ${suiteNames.join(", ")}, separated by commas, or all`, stranger);
  }
  return suiteNames.filter((name) => names.includes(name));
}

function peersFrom(text: string): readonly Peer[] {
  if (text === "none") return [];
  const names = text.split(",").map((part) => part.trim());
  const stranger = names.find((name) => !isPeer(name));
  if (stranger !== undefined) {
    throw refusal("peers", `none, or some of ${peers.join(", ")}, separated by commas`, stranger);
  }
  return peers.filter((peer) => names.includes(peer));
}

function roundsFrom(text: string | undefined): number | null {
  if (text === undefined) return null;
  const rounds = Number(text);
  const known = Number.isInteger(rounds) && rounds >= 1 && rounds <= 100;
  if (!known) throw refusal("rounds", "an integer from 1 to 100", text);
  return rounds;
}

function measureMsFrom(text: string | undefined): number | null {
  if (text === undefined) return null;
  const seconds = Number(text);
  const known = seconds >= 0.1 && seconds <= 600;
  if (!known) throw refusal("seconds", "a number from 0.1 to 600", text);
  return seconds * 1000;
}

function refusal(option: string, expected: string, given: string): TypeError {
  return new TypeError(`Expected --${option} to be ${expected}, got ${JSON.stringify(given)}`);
}
