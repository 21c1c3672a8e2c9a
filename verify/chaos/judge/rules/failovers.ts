import type { Instant } from "../history.ts";
import type { GrantedAttempt, RunHistory } from "../attempts.ts";
import { isSameGrantRun } from "./tenures.ts";

/**
 * Whether the servers may have lost the earlier grant in a failover before they granted the later one. Then exclusion is not judged. A grant
 * that the servers lost stays valid for at most a TTL.
 */
export function crossesFailover(run: RunHistory, key: string, earlier: Instant, later: Instant): boolean {
  return failoversOf(run, key).some(
    ({ since, until }) => since <= later && later <= until + run.plan.maxTtlMs && earlier <= until,
  );
}

/** Whether a failover, or its effects, fall between two moments. */
export function hasFailover(run: RunHistory, key: string, from: Instant, to: Instant): boolean {
  return failoversOf(run, key).some(({ since, until }) => since <= to && from <= until + run.plan.maxTtlMs);
}

/**
 * Whether a failover may have lost the grant of this token, which was requested before a newer grant was known. Its process hands the grant
 * over in memory until the process notices the loss.
 */
export function wasLostInFailover(
  run: RunHistory,
  key: string,
  lease: GrantedAttempt,
  newer: Instant,
): boolean {
  const first = run.attempts
    .filter((other) => other.key === key && other.process === lease.process)
    .filter(({ token }) => token <= lease.token && isSameGrantRun(run.plan, token, lease.token))
    .reduce((earliest, { requestedAt }) => Math.min(earliest, requestedAt), lease.requestedAt);
  return first < newer && crossesFailover(run, key, newer, lease.grantedAt);
}

/** The failovers of a key. The history does not record the server of a latch. */
function failoversOf({ failovers }: RunHistory, key: string): RunHistory["failovers"] {
  return failovers.filter(({ keys }) => keys === null || keys.includes(key) || key.startsWith("latch-"));
}
