import type { Violation } from "../../chaos/judge/rule.ts";
import type { Pair } from "../pairs.ts";
import { Arena } from "./arena.ts";
import { contend, type ContentionResult } from "./contention.ts";
import { checkFaults, type CheckResult } from "./faults.ts";
import { measureHandovers, type HandoverResult } from "./handover.ts";
import { judgeHistory } from "./judge.ts";

export interface PairSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly hasFaults: boolean;
  readonly cache: string;
}

export interface PairResult {
  readonly pair: Pair;
  readonly contention: ContentionResult;
  readonly handover: HandoverResult;
  readonly checks: readonly CheckResult[];
  readonly violations: readonly Violation[];
  /** Errors of the libraries' calls, each kind once. */
  readonly errors: readonly string[];
}

/** Runs all scenarios of a pair on a server of its own. */
export async function runPair(
  pair: Pair,
  { seconds, rounds, hasFaults, cache }: PairSettings,
  folder: string,
): Promise<PairResult> {
  const arena = await Arena.open(pair, folder, cache);
  try {
    const contention = await contend(arena, seconds * 1_000);
    const handover = await measureHandovers(arena, rounds);
    const checks = hasFaults ? await checkFaults(arena) : [];
    await arena.close();
    const violations = (await judgeHistory(folder)).filter((violation) => isConflict(pair, violation));
    return { pair, contention, handover, checks, violations, errors: [...new Set(arena.errors)] };
  } finally {
    await arena.close();
  }
}

/** Two readers of the other library may hold the lock together. The chaos checker knows exclusive locks only. */
function isConflict({ areTheirsShared = false }: Pair, { rule, text }: Violation): boolean {
  return !areTheirsShared || rule !== "exclusion" || !/^client-theirs-.* while client-theirs-/.test(text);
}

/** Why the pair does not pass; empty: it passes. A known limit of the library is no failure. */
export function failuresOf({ pair, contention, handover, checks, violations }: PairResult): string[] {
  const unserved = contention.unserved.ours + contention.unserved.theirs;
  const unhanded = handover.unserved.ours + handover.unserved.theirs;
  return [
    ...violations.map(({ rule, text }) => `${rule}: ${text}`),
    ...(unserved > 0 ? [`${unserved} waits of 10 s ended without a grant`] : []),
    ...(unhanded > 0 ? [`${unhanded} waits of 15 s ended without a grant`] : []),
    ...checks
      .filter(({ check, failure }) => failure !== null && pair.limits?.[check] === undefined)
      .map(({ check, failure }) => `${check}: ${failure}`),
  ];
}
