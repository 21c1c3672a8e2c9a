import type { Violation } from "../rules.ts";
import type { Moment } from "../history.ts";
import { asksOf, type ProcessStory, type RunStory, type Story } from "../stories.ts";

/** An ask has its `waitMs`, a release the command budget; both so much more as the bound says, and the times of stalls. */
export function everyAskIsSettled(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const story of asksOf(run)) {
    const process = run.processes.get(story.process) as ProcessStory;
    const settledAt = story.grantedAt ?? story.refusedAt;
    found.push(...late(run, process, story, "ask", story.askedAt, story.waitMs, settledAt));
    if (story.releasingAt !== undefined) {
      found.push(...late(run, process, story, "release", story.releasingAt, 0, story.releasedAt));
    }
  }
  return found;
}

function late(
  run: RunStory,
  process: ProcessStory,
  { process: name, ask, key, kind }: Story,
  what: "ask" | "release",
  from: Moment,
  allowedMs: number,
  settledAt: Moment | undefined,
): Violation[] {
  const wasKilled = process.killedAt !== undefined || process.crashed !== undefined;
  if (settledAt === undefined && wasKilled) {
    return [];
  }
  const to = settledAt ?? run.endedAt;
  const tookMs = to - from - stalledMs(process, from, to);
  if (settledAt !== undefined && tookMs <= allowedMs + run.plan.bounds.settleMs) {
    return [];
  }
  const how = settledAt === undefined ? "was never settled" : `was settled after ${tookMs.toFixed(0)} ms`;
  const text = `the ${what} of ${name}#${ask} (${kind}) had ${allowedMs} ms, and ${how}`;
  return [{ rule: "waits", at: from, key, text }];
}

function stalledMs({ stalls }: ProcessStory, from: Moment, to: Moment): number {
  let sum = 0;
  for (const stall of stalls) {
    sum += Math.max(0, Math.min(to, stall.to) - Math.max(from, stall.from));
  }
  return sum;
}
