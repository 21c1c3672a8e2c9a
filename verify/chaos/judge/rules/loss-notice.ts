import type { Violation } from "../rule.ts";
import { requestsOf, isGranted, type ProcessHistory, type RunHistory } from "../attempts.ts";

/**
 * A timer in the holder's process, 50 ms after the end of validity, checks that the loss was reported. If the process is stalled, the timer
 * is late too, so the check needs no bound.
 */
export function checkLossNotices(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const attempt of requestsOf(run)) {
    if (!isGranted(attempt)) {
      continue;
    }
    const { process, requestId, key, validUntil } = attempt;
    if (attempt.unreportedAt !== undefined) {
      const afterMs = (attempt.unreportedAt - validUntil).toFixed(0);
      const text = `${process}#${requestId} got no notice of its loss within ${afterMs} ms after the end of its validity`;
      found.push({ rule: "loss-notice", at: attempt.unreportedAt, key, text });
      continue;
    }
    const hasEnd = attempt.lostAt ?? attempt.releasingAt ?? attempt.transferredAt ?? attempt.downgradedAt;
    const { closedAt } = run.processes.get(process) as ProcessHistory;
    if (hasEnd === undefined && closedAt !== undefined && validUntil < closedAt) {
      const text = `${process}#${requestId} ended without a loss, a release or a transfer`;
      found.push({ rule: "loss-notice", at: validUntil, key, text });
    }
  }
  return found;
}
