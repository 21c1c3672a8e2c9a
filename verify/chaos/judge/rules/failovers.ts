import type { Instant } from "../history.ts";
import type { GrantedAttempt, RunHistory } from "../attempts.ts";
import { isSameGrantRun } from "./tenures.ts";

/**
 * Whether a failover may have made the servers forget what was granted at the one moment before they granted at the other: then
 * exclusion is not promised. A lease that nobody knows of any more is valid for a TTL at the most.
 */
export function crossesFailover(run: RunHistory, key: string, earlier: Instant, later: Instant): boolean {
  return failoversOf(run, key).some(
    ({ since, until }) => since <= later && later <= until + run.plan.maxTtlMs && earlier <= until,
  );
}

/** Whether there was a failover, or what comes of one, between two moments. */
export function hasFailover(run: RunHistory, key: string, from: Instant, to: Instant): boolean {
  return failoversOf(run, key).some(({ since, until }) => since <= to && from <= until + run.plan.maxTtlMs);
}

/**
 * Whether its token is that of a grant that was asked for before a newer one was known, and that the servers may have forgotten: its
 * process hands it over in memory until it learns of that.
 */
export function wasLostInFailover(
  run: RunHistory,
  key: string,
  lease: GrantedAttempt,
  newer: Instant,
): boolean {
  const first = run.attempts
    .filter((other) => other.key === key && other.process === lease.process)
    .filter(({ token }) => token <= lease.token && isSameGrantRun(token, lease.token))
    .reduce((earliest, { requestedAt }) => Math.min(earliest, requestedAt), lease.requestedAt);
  return first < newer && crossesFailover(run, key, newer, lease.grantedAt);
}

/** Which server has a latch is not written down. */
function failoversOf({ failovers }: RunHistory, key: string): RunHistory["failovers"] {
  return failovers.filter(({ keys }) => keys === null || keys.includes(key) || key.startsWith("latch-"));
}
