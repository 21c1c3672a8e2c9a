import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Instant } from "../judge/history.ts";
import { drawTimeline, type Window } from "./timeline.ts";
import type { Violation } from "../judge/rule.ts";
import { intervalsByKey } from "../judge/rules/tenures.ts";
import type { RunHistory } from "../judge/attempts.ts";

const longestWindowMs = 30_000;
const aroundMs = 3_000;

/** Draws a timeline for each key: around the first violation, or else around the largest number of faults. Returns the file names. */
export async function drawTimelines(
  run: RunHistory,
  violations: readonly Violation[],
  folder: string,
): Promise<string[]> {
  const names: string[] = [];
  for (const [key, intervals] of intervalsByKey(run)) {
    const ownIntervals = violations.filter((violation) => violation.key === key);
    const window = ownIntervals[0] ? around(ownIntervals[0].at) : busiest(run);
    const name = `timeline-${key}.svg`;
    await writeFile(
      join(folder, name),
      drawTimeline({ run, key, intervals, violations: ownIntervals, window }),
    );
    names.push(name);
  }
  return names.sort();
}

function around(at: Instant): Window {
  return { from: Math.max(0, at - aroundMs), to: at + aroundMs };
}

/** The window with the most faults. */
function busiest({ faults, endedAt }: RunHistory): Window {
  const lengthMs = Math.min(longestWindowMs, endedAt);
  let best: Window = { from: 0, to: lengthMs };
  let most = -1;
  for (const { from: begun } of faults) {
    const from = Math.max(0, Math.min(begun - 500, endedAt - lengthMs));
    const count = faults.filter((fault) => fault.from >= from && fault.from < from + lengthMs).length;
    if (count > most) {
      most = count;
      best = { from, to: from + lengthMs };
    }
  }
  return best;
}
