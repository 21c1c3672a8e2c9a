import type { Violation } from "../rule.ts";
import { requestsOf, type ProcessHistory, type RunHistory } from "../attempts.ts";

/** Each process requests each key in each quiet period. A process comes to rest only after these requests. */
export function checkQuietPeriod(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const { process, requestId, key, kind, requestedAt, grantedAt, refusal } of requestsOf(run)) {
    if (kind !== "probe") {
      continue;
    }
    const { closedAt } = run.processes.get(process) as ProcessHistory;
    if (grantedAt === undefined && (refusal !== undefined || closedAt !== undefined)) {
      const how = refusal ?? "no answer";
      const text = `${process}#${requestId} did not get the lock in a quiet period within ${run.plan.bounds.quietPeriodMs} ms: ${how}`;
      found.push({ rule: "quiet-period", at: requestedAt, key, text });
    }
  }
  for (const { process, at, round } of run.notQuiescent) {
    found.push({
      rule: "quiet-period",
      at,
      key: null,
      text: `${process} did not come to rest after storm ${round}`,
    });
  }
  if (run.phases.at(-1)?.phase !== "end") {
    found.push({ rule: "quiet-period", at: run.endedAt, key: null, text: "the run did not come to its end" });
  }
  return found;
}
