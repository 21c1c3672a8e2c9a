import type { Violation } from "../rule.ts";
import {
  usableUntil,
  isGranted,
  type GrantedAttempt,
  type RunHistory,
  type AttemptHistory,
} from "../attempts.ts";

/** Leases of one owner of a reentrant lock: the requests during the validity of another of its leases. */
export function checkReentry(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const attempts of byReentrantHold(run).values()) {
    for (const attempt of attempts.filter(({ kind }) => kind === "nested")) {
      const text = reentryError(attempt, attempts);
      if (text !== undefined) {
        const at = attempt.grantedAt ?? attempt.refusedAt ?? attempt.requestedAt;
        const { process, requestId, key } = attempt;
        found.push({ rule: "reentry", at, key, text: `${process}#${requestId} ${text}` });
      }
    }
  }
  return found;
}

/** Only one branch of a task is inside at a time, so the other branches may have to wait, until their deadlines. */
function reentryError(attempt: AttemptHistory, attempts: readonly AttemptHistory[]): string | undefined {
  const settledAt = attempt.grantedAt ?? attempt.refusedAt;
  const enclosing = attempts.find((other) => encloses(other, attempt, settledAt ?? Infinity));
  if (!enclosing) {
    return undefined;
  }
  const held = `${enclosing.process}#${enclosing.requestId} (${enclosing.token})`;
  if (isGranted(attempt)) {
    return attempt.token === enclosing.token ? undefined : `has ${attempt.token} inside ${held}`;
  }
  return attempt.refusal === undefined || waitedForRelease(attempt, attempts)
    ? undefined
    : `was refused (${attempt.refusal}) inside ${held}`;
}

function waitedForRelease(
  { requestId, refusal, refusedAt = 0 }: AttemptHistory,
  attempts: readonly AttemptHistory[],
): boolean {
  const branches = attempts
    .filter((other) => other.kind === "nested" && other.requestId !== requestId)
    .filter(isGranted);
  const isTaken = branches.some(
    (branch) => branch.grantedAt <= refusedAt && usableUntil(branch) >= refusedAt,
  );
  return refusal === "wait-timeout" && isTaken;
}

function encloses(
  other: AttemptHistory,
  { requestId, requestedAt }: AttemptHistory,
  settledAt: number,
): other is GrantedAttempt {
  return (
    other.requestId !== requestId &&
    isGranted(other) &&
    other.grantedAt <= requestedAt &&
    usableUntil(other) > settledAt
  );
}

function byReentrantHold(run: RunHistory): Map<string, AttemptHistory[]> {
  const holds = new Map<string, AttemptHistory[]>();
  for (const attempt of run.attempts) {
    if (attempt.reentrantHold !== undefined) {
      holds.set(attempt.reentrantHold, [...(holds.get(attempt.reentrantHold) ?? []), attempt]);
    }
  }
  return holds;
}
