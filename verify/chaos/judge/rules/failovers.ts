import type { Moment } from "../history.ts";
import type { Held, RunStory } from "../attempts.ts";
import { isOneRun } from "./tenures.ts";

/**
 * Whether a failover may have made the servers forget what was granted at the one moment before they granted at the other: then
 * exclusion is not promised. A lease that nobody knows of any more is valid for a TTL at the most.
 */
export function isAcross(run: RunStory, key: string, earlier: Moment, later: Moment): boolean {
  return of(run, key).some(
    ({ since, until }) => since <= later && later <= until + run.plan.maxTtlMs && earlier <= until,
  );
}

/** Whether there was a failover, or what comes of one, between two moments. */
export function hasFailover(run: RunStory, key: string, from: Moment, to: Moment): boolean {
  return of(run, key).some(({ since, until }) => since <= to && from <= until + run.plan.maxTtlMs);
}

/**
 * Whether its token is that of a grant that was asked for before a newer one was known, and that the servers may have forgotten: its
 * process hands it over in memory until it learns of that.
 */
export function isOfForgotten(run: RunStory, key: string, lease: Held, newer: Moment): boolean {
  const first = run.stories
    .filter((other) => other.key === key && other.process === lease.process)
    .filter(({ token }) => token <= lease.token && isOneRun(token, lease.token))
    .reduce((earliest, { askedAt }) => Math.min(earliest, askedAt), lease.askedAt);
  return first < newer && isAcross(run, key, newer, lease.grantedAt);
}

/** Which server has a latch is not written down. */
function of({ failovers }: RunStory, key: string): RunStory["failovers"] {
  return failovers.filter(({ keys }) => keys === null || keys.includes(key) || key.startsWith("latch-"));
}
