import type { Violation } from "../rule.ts";
import { usableUntil, isGranted, type GrantedAttempt, type RunHistory } from "../attempts.ts";
import { hasFailover } from "./failovers.ts";

/**
 * Leases of several keys. The rule `exclusion` checks each key. After an operator broke one key, the servers confirm no renewal, so the lease
 * keeps at most its former validity.
 */
export function checkMultiLocks(run: RunHistory): Violation[] {
  const several = run.attempts.filter(isGranted).filter(({ lockKind }) => lockKind === "all");
  return [...several.filter(({ token }) => token === 0n).map(incomplete), ...outlivedBreak(run, several)];
}

function incomplete({ process, requestId, key, grantedAt }: GrantedAttempt): Violation {
  const text = `${process}#${requestId} was granted without a token for this key`;
  return { rule: "multi-lock", at: grantedAt, key, text };
}

function outlivedBreak(run: RunHistory, several: readonly GrantedAttempt[]): Violation[] {
  const found: Violation[] = [];
  for (const { key, token, confirmedAt } of run.breaks) {
    for (const lease of several.filter((other) => other.key === key && other.token === token)) {
      const end = usableUntil(lease);
      const isJudged = confirmedAt !== undefined && !hasFailover(run, key, confirmedAt, end); // a failover may lose the break
      if (isJudged && end > confirmedAt + run.plan.maxTtlMs) {
        const text = `${lease.process}#${lease.requestId} was valid for ${(end - confirmedAt).toFixed(0)} ms after this key was broken`;
        found.push({ rule: "multi-lock", at: confirmedAt, key, text });
      }
    }
  }
  return found;
}
