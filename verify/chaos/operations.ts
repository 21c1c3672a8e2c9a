import { capacityOf, intervalsByKey, isExclusive, type HoldInterval } from "./judge/rules/tenures.ts";
import type { GrantedAttempt, RunHistory } from "./judge/attempts.ts";
import type { Instant } from "./judge/history.ts";

/** An operation on a lock, which took effect at one moment from `call` to `return`, in µs. One line of JSON for each. */
export interface Operation {
  readonly key: string;
  /** The number of the grant. Readers of a quorum may share a token. */
  readonly grant: number;
  /** `end` is a release, an expiry or a break. */
  readonly op: "acquire" | "end";
  readonly token: string;
  /** Whether the holder excludes all others. */
  readonly exclusive: boolean;
  readonly weight: number;
  readonly capacity: number;
  readonly call: number;
  readonly return: number;
}

/**
 * The grants of a run as operations of a sequential lock, for a checker of linearizability. A grant takes effect between its request and
 * the moment at which its holder knows it. It ends between its holder's last moment of use and the reply of its release. Without such a
 * reply it may end at any later time, because the server ends it. Grants that had expired before their holders knew them are left out.
 */
export function operationsOf(run: RunHistory): Operation[] {
  return [...intervalsByKey(run)].flatMap(([key, intervals]) =>
    intervals
      .filter(({ from, to }) => to > from)
      .flatMap((interval, grant) => {
        const { token, weight, from, to, leases } = interval;
        const exclusive = isExclusive(leases[0] as GrantedAttempt);
        const capacity = capacityOf(run.plan, key);
        const about = { key, grant, token: String(token), exclusive, weight, capacity };
        const requestedAt = Math.min(...leases.map((lease) => lease.requestedAt));
        return [
          { ...about, op: "acquire", call: micros(requestedAt), return: micros(from) },
          { ...about, op: "end", call: micros(to), return: micros(endOf(interval, run.endedAt)) },
        ] satisfies Operation[];
      }),
  );
}

/** The latest moment at which the grant ended. */
function endOf({ to, leases }: HoldInterval, runEndedAt: Instant): Instant {
  const released = leases.flatMap(({ releasedAt, releaseAnswer, releasingAt }) =>
    releaseAnswer === "true" && releasingAt !== undefined && releasingAt >= to
      ? [releasedAt ?? runEndedAt]
      : [],
  );
  return released.length > 0 ? Math.min(...released) : Math.max(runEndedAt, to);
}

function micros(at: Instant): number {
  return Math.round(at * 1_000);
}
