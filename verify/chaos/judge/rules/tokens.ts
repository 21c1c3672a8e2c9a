import type { Violation } from "../rule.ts";
import { usableUntil, grantedByKey, type GrantedAttempt, type RunHistory } from "../attempts.ts";
import { crossesFailover, wasLostInFailover } from "./failovers.ts";
import { isExclusive, isSameGrantRun, mayBeShared, intervalsByKey, type HoldInterval } from "./tenures.ts";

/**
 * Checks each token against earlier grants in the order of the grants, except grants that may overlap it. Checks each token also against all
 * grants that were complete before its request.
 */
export function checkFencingTokens(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const [key, intervals] of intervalsByKey(run)) {
    found.push(
      ...decreasingTokens(run, key, intervals),
      ...intervals.flatMap(({ leases }) => unrelatedLeases(key, leases)),
    );
  }
  for (const [key, held] of grantedByKey(run)) {
    const isShared = mayBeShared(run.plan, key);
    found.push(...staleTokens(run, key, isShared ? firstGrants(run, held) : held));
    if (isShared) {
      found.push(...duplicateTokens(run, key, held));
    }
  }
  return found;
}

/**
 * A holder that excludes others has a larger token than all earlier holders. Another holder has a larger token than all earlier exclusive
 * holders.
 */
function decreasingTokens(run: RunHistory, key: string, intervals: readonly HoldInterval[]): Violation[] {
  const found: Violation[] = [];
  let newest = { token: 0n, from: 0 };
  let newestExclusive = newest;
  for (const interval of intervals.filter(({ from, to }) => to > from)) {
    const { token, from } = interval;
    const lease = interval.leases[0] as GrantedAttempt;
    const excludes = isExclusive(lease);
    const bound = excludes ? newest : newestExclusive;
    if (token < bound.token && !wasLostInFailover(run, key, lease, bound.from)) {
      found.push({ rule: "tokens", at: from, key, text: `${token} was granted after ${bound.token}` });
    }
    newest = token > newest.token ? interval : newest;
    newestExclusive = excludes && token > newestExclusive.token ? interval : newestExclusive;
  }
  return found;
}

/** Leases with the same token that do not share an attempt, a transfer or an owner that entered again. */
function unrelatedLeases(key: string, leases: readonly GrantedAttempt[]): Violation[] {
  const [first, ...others] = leases.filter(({ kind }) => kind !== "adopt");
  return others
    .filter(
      ({ attemptId, reentrantHold }) =>
        (attemptId ?? reentrantHold) === undefined ||
        (attemptId ?? reentrantHold) !== (first?.attemptId ?? first?.reentrantHold),
    )
    .map((other) => duplicateToken(key, other, first as GrantedAttempt));
}

/** The duplicate tokens of a lock that several may hold. Its intervals may have equal tokens. */
function duplicateTokens(run: RunHistory, key: string, held: readonly GrantedAttempt[]): Violation[] {
  const isQuorum = run.plan.engine === "redlock";
  const found: Violation[] = [];
  const byToken = new Map<bigint, GrantedAttempt>();
  for (const lease of held.toSorted((one, other) => one.grantedAt - other.grantedAt)) {
    const other = byToken.get(lease.token);
    byToken.set(lease.token, lease);
    if (lease.kind === "downgrade") {
      if (other?.downgradedAt === undefined || other.process !== lease.process) {
        const text = `${lease.process}#${lease.requestId} was not a writer with its token ${lease.token}`;
        found.push({ rule: "tokens", at: lease.grantedAt, key, text });
      }
    } else if (other && lease.lockKind === "read" && !sharesGrant(lease, other)) {
      const mayBeAlike = isQuorum && other.lockKind === "read" && lease.requestedAt < usableUntil(other);
      if (!mayBeAlike) {
        found.push(duplicateToken(key, lease, other));
      }
    }
  }
  return found;
}

function sharesGrant(lease: GrantedAttempt, { attemptId }: GrantedAttempt): boolean {
  return lease.kind === "adopt" || (attemptId !== undefined && attemptId === lease.attemptId);
}

function duplicateToken(
  key: string,
  { process, requestId, token, grantedAt }: GrantedAttempt,
  other: GrantedAttempt,
): Violation {
  const text = `${process}#${requestId} has the same token ${token} as ${other.process}#${other.requestId}`;
  return { rule: "tokens", at: grantedAt, key, text };
}

/**
 * The first lease of each grant, without the leases that continue a grant. Other grants may come between these. An attempt may have been
 * granted after its first request.
 */
function firstGrants(run: RunHistory, held: readonly GrantedAttempt[]): GrantedAttempt[] {
  const requestedAt = new Map<string, number>();
  for (const { attemptId, requestedAt: at } of run.attempts) {
    if (attemptId !== undefined) {
      requestedAt.set(attemptId, Math.min(at, requestedAt.get(attemptId) ?? Infinity));
    }
  }
  const attempts = new Set<string>();
  return held
    .toSorted((one, other) => one.grantedAt - other.grantedAt)
    .filter(({ kind, attemptId }) => {
      const isFirst = attemptId === undefined || !attempts.has(attemptId);
      attempts.add(attemptId ?? "");
      return isFirst && kind !== "adopt" && kind !== "downgrade";
    })
    .filter((lease) => !isHandedOver(lease, held))
    .map((lease) => ({ ...lease, requestedAt: requestedAt.get(lease.attemptId ?? "") ?? lease.requestedAt }));
}

/** A lease of a semaphore that its process handed over in memory. Other grants may come between. */
function isHandedOver(
  { lockKind, process, token, grantedAt }: GrantedAttempt,
  held: readonly GrantedAttempt[],
): boolean {
  return held.some(
    (other) =>
      lockKind === "semaphore" &&
      other.lockKind === lockKind &&
      other.process === process &&
      other.token === token - 1n &&
      (other.releasingAt ?? Infinity) <= grantedAt,
  );
}

function staleTokens(run: RunHistory, key: string, held: readonly GrantedAttempt[]): Violation[] {
  const found: Violation[] = [];
  const isShared = mayBeShared(run.plan, key); // equal tokens count too, because the intervals do not distinguish overlapping holders
  const byGrant = held.toSorted((one, other) => one.grantedAt - other.grantedAt);
  const byRequest = held.toSorted((one, other) => one.requestedAt - other.requestedAt);
  let newest: Pick<GrantedAttempt, "token" | "grantedAt"> = { token: 0n, grantedAt: 0 };
  let complete = 0;
  for (const lease of byRequest) {
    const { requestedAt, token, process, requestId } = lease;
    for (let next = byGrant[complete]; next && next.grantedAt < requestedAt; next = byGrant[complete]) {
      newest = next.token > newest.token ? next : newest;
      complete += 1;
    }
    const isSmaller = token < newest.token || (isShared && token === newest.token);
    if (isSmaller && !wasLostInFailover(run, key, lease, newest.grantedAt)) {
      const text = `${process}#${requestId} requested after ${newest.token} was granted, and got ${token}`;
      found.push({ rule: "tokens", at: requestedAt, key, text });
    }
  }
  return found;
}

/** A repeat that was granted while an earlier lease of the attempt was valid, in the same process. */
export function checkRepeatedAttempts(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const [key, held] of grantedByKey(run)) {
    for (const [attempt, leases] of byAttempt(held)) {
      const [first, ...others] = leases.toSorted((one, other) => one.grantedAt - other.grantedAt);
      for (const other of others) {
        const wasValid =
          first &&
          other.grantedAt < Math.min(usableUntil(first), brokenAt(run, first)) &&
          !crossesFailover(run, key, first.grantedAt, other.grantedAt);
        if (wasValid && other.token !== first.token) {
          const text = `attempt ${attempt} was granted ${first.token}, and while that was valid ${other.token}`;
          found.push({ rule: "attempts", at: other.grantedAt, key, text });
        }
      }
    }
  }
  return found;
}

/** When an operator started to end the grant by force. Its holder may learn about the break late. */
function brokenAt({ breaks, plan }: RunHistory, { key, token }: GrantedAttempt): number {
  const own = breaks.filter((broken) => broken.key === key && isSameGrantRun(plan, broken.token, token));
  return Math.min(...own.map(({ at }) => at));
}

function byAttempt(held: readonly GrantedAttempt[]): Map<string, GrantedAttempt[]> {
  const attempts = new Map<string, GrantedAttempt[]>();
  for (const lease of held) {
    if (lease.attemptId !== undefined) {
      attempts.set(lease.attemptId, [...(attempts.get(lease.attemptId) ?? []), lease]);
    }
  }
  return attempts;
}
