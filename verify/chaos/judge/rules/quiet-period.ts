import type { Violation } from "../rules.ts";
import { asksOf, type ProcessStory, type RunStory } from "../attempts.ts";

/** Each process asks for each key in each peace; that all came to rest shows that they were asked for. */
export function everyoneInPeace(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const { process, ask, key, kind, askedAt, grantedAt, refusal } of asksOf(run)) {
    if (kind !== "probe") {
      continue;
    }
    const { closedAt } = run.processes.get(process) as ProcessStory;
    if (grantedAt === undefined && (refusal !== undefined || closedAt !== undefined)) {
      const how = refusal ?? "no answer";
      const text = `${process}#${ask} did not get the lock in peace within ${run.plan.bounds.peaceMs} ms: ${how}`;
      found.push({ rule: "peace", at: askedAt, key, text });
    }
  }
  for (const { process, at, round } of run.restless) {
    found.push({
      rule: "peace",
      at,
      key: null,
      text: `${process} did not come to rest after storm ${round}`,
    });
  }
  if (run.phases.at(-1)?.phase !== "end") {
    found.push({ rule: "peace", at: run.endedAt, key: null, text: "the run did not come to its end" });
  }
  return found;
}
