import type { Violation } from "../rule.ts";
import type { Instant } from "../history.ts";
import {
  requestsOf,
  stalledMs,
  type ProcessHistory,
  type RunHistory,
  type AttemptHistory,
} from "../attempts.ts";
import { callName } from "./latches.ts";

/** A request has its `waitMs`, and a release the command budget. The bound and the stalls of the process extend both. */
export function checkWaits(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const attempt of requestsOf(run)) {
    const process = run.processes.get(attempt.process) as ProcessHistory;
    const settledAt = attempt.grantedAt ?? attempt.refusedAt;
    found.push(
      ...lateViolation(
        run,
        process,
        describeCall(attempt, "request"),
        attempt.requestedAt,
        attempt.waitMs,
        settledAt,
      ),
    );
    if (attempt.releasingAt !== undefined) {
      found.push(
        ...lateViolation(
          run,
          process,
          describeCall(attempt, "release"),
          attempt.releasingAt,
          0,
          attempt.releasedAt,
        ),
      );
    }
  }
  for (const call of run.latchCalls) {
    const process = run.processes.get(call.process) as ProcessHistory;
    const attempt = { key: call.key, what: `the call of ${callName(call)}` };
    found.push(...lateViolation(run, process, attempt, call.requestedAt, call.waitMs, call.settledAt));
  }
  return found;
}

function describeCall(
  { process, requestId, key, kind }: AttemptHistory,
  operation: "request" | "release",
): { readonly key: string; readonly what: string } {
  return { key, what: `the ${operation} of ${process}#${requestId} (${kind})` };
}

function lateViolation(
  run: RunHistory,
  process: ProcessHistory,
  { key, what: description }: { readonly key: string; readonly what: string },
  from: Instant,
  allowedMs: number,
  settledAt: Instant | undefined,
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
  const text = `${description} had ${allowedMs} ms, and ${how}`;
  return [{ rule: "waits", at: from, key, text }];
}
