import { readHistory } from "../../chaos/judge/read-history.ts";
import type { Violation } from "../../chaos/judge/rule.ts";
import { checkExclusion } from "../../chaos/judge/rules/exclusion.ts";
import { checkFencingTokens } from "../../chaos/judge/rules/tokens.ts";

/** Judges the history of a pair by the chaos checker's rules for exclusion and for fencing tokens. */
export async function judgeHistory(folder: string): Promise<Violation[]> {
  const run = await readHistory(folder);
  return [...checkExclusion(run), ...checkFencingTokens(run)]; // grants of libraries without fencing tokens have negative numbers here
}
