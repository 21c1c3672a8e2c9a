import type { Violation } from "../rules.ts";
import { usableUntil, isGranted, type GrantedAttempt, type RunHistory } from "../attempts.ts";
import { hasFailover } from "./failovers.ts";

/**
 * Several keys under one lease. That each is nobody else's as long as the lease says that it is valid is a matter of `exclusion`. Of
 * a key that an operator broke the servers confirm no renewal any more, so the lease can only have what it had.
 */
export function checkMultiLocks(run: RunHistory): Violation[] {
  const several = run.attempts.filter(isGranted).filter(({ lockKind }) => lockKind === "all");
  return [...several.filter(({ token }) => token === 0n).map(incomplete), ...outlivedBreak(run, several)];
}

function incomplete({ process, requestId, key, grantedAt }: GrantedAttempt): Violation {
  const text = `${process}#${requestId} was granted without a token of this key`;
  return { rule: "multi-lock", at: grantedAt, key, text };
}

function outlivedBreak(run: RunHistory, several: readonly GrantedAttempt[]): Violation[] {
  const found: Violation[] = [];
  for (const { key, token, confirmedAt } of run.breaks) {
    for (const lease of several.filter((other) => other.key === key && other.token === token)) {
      const end = usableUntil(lease);
      const isJudged = confirmedAt !== undefined && !hasFailover(run, key, confirmedAt, end); // else the break may be forgotten
      if (isJudged && end > confirmedAt + run.plan.maxTtlMs) {
        const text = `${lease.process}#${lease.requestId} was valid for ${(end - confirmedAt).toFixed(0)} ms after this key was broken`;
        found.push({ rule: "multi-lock", at: confirmedAt, key, text });
      }
    }
  }
  return found;
}
