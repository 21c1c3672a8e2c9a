import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { figuresOf, type Figures } from "../report/figures.ts";
import { readHistory } from "./read-history.ts";
import { reportOf } from "../report/report.ts";
import type { Violation } from "./rule.ts";
import { rules } from "./rules.ts";
import type { RunHistory } from "./attempts.ts";

export interface Verdict {
  readonly violations: readonly Violation[];
  readonly figures: Figures;
  readonly summary: string;
}

/** Judges the history in a folder. It writes verdict.json and report.md into the folder. */
export async function judge(folder: string): Promise<Verdict> {
  const run = await readHistory(folder);
  const violations = violationsOf(run);
  const figures = figuresOf(run);
  const summary = summaryOf(run, violations, figures);
  await writeFile(join(folder, "report.md"), reportOf(run, violations, figures));
  await writeFile(join(folder, "verdict.json"), `${JSON.stringify({ violations, figures }, undefined, 2)}\n`);
  return { violations, figures, summary };
}

export function violationsOf(run: RunHistory): Violation[] {
  return rules.flatMap(({ check }) => check(run)).sort((one, other) => one.at - other.at);
}

const maxShown = 10;

function summaryOf({ plan }: RunHistory, violations: readonly Violation[], figures: Figures): string {
  const { grants, losses, faults, seconds, failovers, conflictsAcrossFailovers } = figures;
  const failoverNote =
    failovers.length === 0
      ? ""
      : `, ${failovers.length} failovers with ${conflictsAcrossFailovers} conflicts across them`;
  const headline = `${plan.engine}, seed ${plan.seed}: ${faults} faults in ${seconds} s, ${grants} grants, ${losses} losses reported${failoverNote}`;
  const shownLines = violations
    .slice(0, maxShown)
    .map(
      ({ rule, at, key, text }) =>
        `  ${rule} at ${at.toFixed(3)} ms${key === null ? "" : ` (${key})`}: ${text}`,
    );
  const omittedLine = violations.length > maxShown ? [`  and ${violations.length - maxShown} more`] : [];
  const count = violations.length === 0 ? "nothing violated" : `VIOLATIONS: ${violations.length}`;
  return [`${headline}: ${count}`, ...shownLines, ...omittedLine].join("\n");
}
