import type { Violation } from "../rules.ts";
import type { Moment } from "../history.ts";
import { asksOf, stalledMs, type ProcessStory, type RunStory, type Story } from "../attempts.ts";
import { nameOf } from "./latches.ts";

/** An ask has its `waitMs`, a release the command budget; both so much more as the bound says, and the times of stalls. */
export function everyAskIsSettled(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const story of asksOf(run)) {
    const process = run.processes.get(story.process) as ProcessStory;
    const settledAt = story.grantedAt ?? story.refusedAt;
    found.push(...late(run, process, told(story, "ask"), story.askedAt, story.waitMs, settledAt));
    if (story.releasingAt !== undefined) {
      found.push(...late(run, process, told(story, "release"), story.releasingAt, 0, story.releasedAt));
    }
  }
  for (const call of run.latchCalls) {
    const process = run.processes.get(call.process) as ProcessStory;
    const story = { key: call.key, what: `the call of ${nameOf(call)}` };
    found.push(...late(run, process, story, call.askedAt, call.waitMs, call.settledAt));
  }
  return found;
}

function told(
  { process, ask, key, kind }: Story,
  what: "ask" | "release",
): { readonly key: string; readonly what: string } {
  return { key, what: `the ${what} of ${process}#${ask} (${kind})` };
}

function late(
  run: RunStory,
  process: ProcessStory,
  { key, what }: { readonly key: string; readonly what: string },
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
  const text = `${what} had ${allowedMs} ms, and ${how}`;
  return [{ rule: "waits", at: from, key, text }];
}
