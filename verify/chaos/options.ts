import { parseArgs } from "node:util";

import { integerOption, invalidOption } from "../options.ts";
import { engines } from "./plan/engines.ts";
import { engineNames, omissions, usualEngines, type EngineName, type Omission } from "./plan/plan.ts";

export interface ResolvedOptions {
  readonly help: boolean;
  readonly minutes: number;
  readonly engines: readonly EngineName[];
  readonly nodeCount: number;
  readonly seed: number;
  /** The folder of the recorded run. null: a new folder, named by the date. */
  readonly folder: string | null;
  readonly without: Omission | null;
}

export const usage: string = `Usage: npm run verify:chaos -- [options]

  --minutes N      duration of all engines together (default: 2)
  --engine NAME    ${engineNames.slice(0, 6).join(", ")},
                   ${engineNames.slice(6).join(", ")},
                   both (the first two) or all (default: both)
  --nodes N        servers of redlock: 5 or 3 (default: 5)
  --seed S         seed of the plan (default: 1)
  --folder F       folder for plan, history and report
                   (default: verify/chaos/runs/<date>)
  --without RULE   leaves out a rule, and runs the faults that show its absence,
                   so that the checker must detect a violation:
                   guard (of redlock: restarted nodes vote at once), or
                   durability (of redis: the server loses its data at a restart)
  --help           this text
`;

/** @throws {TypeError} with the name of the option that is invalid */
export function parseOptions(args: readonly string[]): ResolvedOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "2" },
      engine: { type: "string", default: "both" },
      nodes: { type: "string", default: "5" },
      seed: { type: "string", default: "1" },
      folder: { type: "string" },
      without: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const named = enginesFrom(values.engine);
  const without = values.without === undefined ? null : omissionFrom(values.without, named);
  return {
    help: values.help,
    minutes: minutesFrom(values.minutes),
    engines: without === null ? named : named.filter((name) => without in engines[name].omissions),
    nodeCount: nodeCountFrom(values.nodes),
    seed: integerOption("seed", values.seed, [0, 2 ** 31 - 1]),
    folder: values.folder ?? null,
    without,
  };
}

function enginesFrom(text: string): readonly EngineName[] {
  if (text === "both") return usualEngines;
  if (text === "all") return engineNames;
  const known = engineNames.find((name) => name === text);
  if (known === undefined) throw invalidOption("engine", `${engineNames.join(", ")}, both or all`, text);
  return [known];
}

function omissionFrom(text: string, named: readonly EngineName[]): Omission {
  const known = omissions.find((name) => name === text);
  if (known === undefined || !named.some((name) => known in engines[name].omissions)) {
    const possible = named.flatMap((name) => Object.keys(engines[name].omissions));
    throw invalidOption("without", `${possible.join(" or ")}, as the engine is ${named.join(" or ")}`, text);
  }
  return known;
}

function minutesFrom(text: string): number {
  const minutes = Number(text);
  if (!(minutes >= 0.2 && minutes <= 1_440))
    throw invalidOption("minutes", "a number from 0.2 to 1440", text);
  return minutes;
}

function nodeCountFrom(text: string): number {
  const count = Number(text);
  const known = engines.redlock.nodeCounts;
  if (!known.includes(count)) throw invalidOption("nodes", known.join(" or "), text);
  return count;
}
