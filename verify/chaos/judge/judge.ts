import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { figuresOf, type Figures } from "../report/figures.ts";
import { readHistory } from "./read-history.ts";
import { reportOf } from "../report/report.ts";
import { rules, type Violation } from "./rules.ts";
import type { RunStory } from "./attempts.ts";
import { drawTimelines } from "../report/timelines.ts";

export interface Verdict {
  readonly violations: readonly Violation[];
  readonly figures: Figures;
  readonly summary: string;
}

/** Judges the history in that folder, and leaves there verdict.json, report.md and a timeline for each key. */
export async function judge(folder: string): Promise<Verdict> {
  const run = await readHistory(folder);
  const violations = violationsOf(run);
  const figures = figuresOf(run);
  const timelines = await drawTimelines(run, violations, folder);
  const summary = summaryOf(run, violations, figures);
  await writeFile(join(folder, "report.md"), reportOf(run, violations, figures, timelines));
  await writeFile(join(folder, "verdict.json"), `${JSON.stringify({ violations, figures }, undefined, 2)}\n`);
  return { violations, figures, summary };
}

export function violationsOf(run: RunStory): Violation[] {
  return rules.flatMap(({ check }) => check(run)).sort((one, other) => one.at - other.at);
}

const mostTold = 10;

function summaryOf({ plan }: RunStory, violations: readonly Violation[], figures: Figures): string {
  const { grants, losses, faults, seconds, failovers, conflictsAcrossFailovers } = figures;
  const across =
    failovers.length === 0
      ? ""
      : `, ${failovers.length} failovers with ${conflictsAcrossFailovers} conflicts across them`;
  const about = `${plan.engine}, seed ${plan.seed}: ${faults} faults in ${seconds} s, ${grants} grants, ${losses} losses told${across}`;
  const told = violations
    .slice(0, mostTold)
    .map(
      ({ rule, at, key, text }) =>
        `  ${rule} at ${at.toFixed(3)} ms${key === null ? "" : ` (${key})`}: ${text}`,
    );
  const more = violations.length > mostTold ? [`  and ${violations.length - mostTold} more`] : [];
  const count = violations.length === 0 ? "nothing violated" : `VIOLATIONS: ${violations.length}`;
  return [`${about}: ${count}`, ...told, ...more].join("\n");
}
